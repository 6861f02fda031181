import { type Delivering, deliver } from '../deliver.ts'
import { type Behaviour, borne } from '../row.ts'

/** A handler whose event ends as this dead letter. */
export const dead = (
  does: string,
  code: string,
  message: string,
  handler: Delivering['handler'],
  more: Partial<Delivering> = {},
): Behaviour =>
  borne(does, `dead letter ${code}: ${message}`, { status: 'DEAD', code, message }, () =>
    deliver({ handler, ...more }),
  )

/** A handler whose event is DONE all the same. */
export const done = (
  does: string,
  means: string,
  handler: Delivering['handler'],
  more: Partial<Delivering> = {},
): Behaviour => borne(does, means, 'DONE', async () => (await deliver({ handler, ...more })).status)
