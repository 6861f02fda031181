import { CommitpostError } from '../../runtime/errors.ts'
import { isRefusalReason, type RefusalData, RefusedError } from '../../runtime/refused-error.ts'
import { type DriverError, driverErrorOf } from './driver-error.ts'

/** The SQLSTATE of what cannot be done as things stand. */
const REFUSED = '55000'

/** What a function of the database refused, as the library's own error; all else as it is. */
export function refusal(error: unknown): unknown {
  const refused = driverErrorOf(error)
  if (refused?.code !== REFUSED) return error
  const { constraint } = refused
  const message = refusalMessage(refused)
  // A trigger of somebody else's may refuse in the same way.
  return isRefusalReason(constraint)
    ? new RefusedError(constraint, message, { data: dataOf(refused), cause: error })
    : new CommitpostError('INVALID_STATE', message, { cause: error })
}

/** What was refused and what to do about it, as sentences. */
export function refusalMessage({ message, hint }: DriverError): string {
  const sentence = `${message[0]?.toUpperCase()}${message.slice(1)}.`
  return hint === null ? sentence : `${sentence} ${hint}`
}

function dataOf({ detail }: DriverError): RefusalData {
  const data = JSON.parse(detail ?? '{}') as Readonly<Record<string, unknown>>
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, String(value)]))
}
