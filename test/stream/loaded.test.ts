import { expect, test } from 'vitest'
import type { LoadedFiles } from '../support/loaded-files.ts'
import { bePatient } from '../support/patience.ts'
import { firstLine, startProgram } from '../support/program.ts'
import { startStreamServer, streamScene } from './scene.ts'

bePatient()

test('what reads the log is loaded with a worker that does, and not when it is first needed; and with no other', async () => {
  await using server = await startStreamServer(18)
  await using scene = await streamScene(server.url)
  const { schema } = scene
  const loadedBy = (engine: 'queue' | 'stream'): Promise<LoadedFiles> =>
    firstLine(startProgram('loaded-files', [JSON.stringify({ url: server.url, schema, engine })]))
  const queue = await loadedBy('queue')
  await scene.outbox.retire('mirror', { operator: 'kim' })
  const stream = await loadedBy('stream')
  const ofStream =
    /^src\/(stream|store\/postgres\/(stream-(store|lease|gate|scope)|log-session|slot\.|park-events|missed-events))/
  expect(stream.atStart).toContain('src/store/postgres/park-events.js')
  expect({ queue: queue.later, stream: stream.later }).toEqual({ queue: [], stream: [] })
  expect([...queue.atStart, ...queue.later].filter((file) => ofStream.test(file))).toEqual([])
})
