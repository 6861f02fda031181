import { expect, test } from 'vitest'
import { recordingSink } from '../alert/support.ts'
import { bePatient } from '../support/patience.ts'
import { startStreamServer, stopReader, streamScene } from './scene.ts'

bePatient()

test('a log that has lost events raises an alarm with the reason, also where it is read again before anybody looks', async () => {
  await using server = await startStreamServer(18)
  await using scene = await streamScene(server.url)
  const first = scene.work('mirror')
  await first.worker.start()
  await first.saw('streaming')
  await stopReader(first, scene)
  const [slot] = await scene.slots()
  await scene.pool.query('select pg_drop_replication_slot($1)', [slot?.['slot_name']])
  const second = scene.work('mirror')
  await second.worker.start()
  await second.saw('streaming')

  await using monitor = scene.outbox.monitor({ sinks: [recordingSink()] })
  const { conditions } = await monitor.check()
  expect(conditions).toMatchObject([
    { key: 'streamGap:mirror', subscription: { log: { gap: 'slot-missing' } } },
  ])
})
