import { expect, test } from 'vitest'
import { NonRetryableError } from '../../src/index.ts'
import { openRetention } from '../acceptance/retention-system.ts'

test('what the original held is not quoted by the dead letter of the event that took its place', async () => {
  await using at = await openRetention()
  const { outbox } = at.system
  const greeter = outbox.subscription('greeter', {
    on: {
      MemberJoined: ({ payload: { email } }) => {
        throw new NonRetryableError(`550 no such mailbox: ${email}`)
      },
    },
  })
  await at.system.run([greeter])
  const [original] = await at.join('ann')
  await at.system.untilSettled()
  const [first] = await outbox.deadLetters.list()
  await outbox.pause('greeter', { operator: 'kim' })
  const { eventId } = await outbox.deadLetters.amend(
    first?.id as string,
    { name: 'ann', email: 'second@example.com' },
    { operator: 'kim' },
  )
  expect(JSON.stringify(await outbox.proof.why(eventId))).not.toContain('ann@example.com')
  await outbox.resume('greeter', { operator: 'kim' })
  await at.system.untilSettled()
  const [again] = await outbox.deadLetters.list({ resolved: false })
  expect(again?.eventId).toBe(eventId)
  const shown = await outbox.deadLetters.show(again?.id as string)
  expect(shown.attemptHistory).toHaveLength(1)
  expect(JSON.stringify(shown)).not.toContain('example.com')
  // The history of the original is where it was.
  const before = await outbox.deadLetters.show(first?.id as string)
  expect(before).toMatchObject({ eventId: original })
  expect(before.attemptHistory).toHaveLength(1)
})
