import type { DriverError } from './driver-error.ts'

/** What a function of the database refused and what to do about it, as sentences. */
export function refusalMessage({ message, hint }: DriverError): string {
  const sentence = `${message[0]?.toUpperCase()}${message.slice(1)}.`
  return hint === null ? sentence : `${sentence} ${hint}`
}
