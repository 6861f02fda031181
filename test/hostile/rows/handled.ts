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

// By the database's clock alone, and true however slow the machine is: a minute after the failure is no less than a minute
// after the attempt began, and no more than one from now.
const WAIT_SQL = `
  select next_retry_at >= last_attempt_at + interval '1 minute' as "isNoSooner",
         next_retry_at <= clock_timestamp() + interval '1 minute' as "isNoLater"
    from outbox_delivery`

/** A back-off that is of no use, so that the event waits as long as is usual without one. */
export const backedOff = (does: string, delayMs: () => number): Behaviour =>
  borne(
    does,
    'PENDING again after a minute',
    { status: 'PENDING', isNoSooner: true, isNoLater: true },
    async () => {
      let wait: unknown
      const { status } = await deliver({
        handler: () => {
          throw new Error('x')
        },
        options: { retry: { delayMs }, maxAttempts: 2 },
        until: ({ kind }) => kind === 'retried',
        afterwards: async (pool) => {
          wait = (await pool.query(WAIT_SQL)).rows[0]
        },
      })
      return { status, ...(wait as object) }
    },
  )
