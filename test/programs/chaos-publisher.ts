import { runUntilSignal } from '../../src/index.ts'
import type { ChaosPublisherConfig } from '../chaos/config.ts'
import { startPublishing } from '../chaos/publishing.ts'

// A publisher of a chaos run: node chaos-publisher.js <ChaosPublisherConfig as JSON>
const config = JSON.parse(process.argv[2] ?? '{}') as ChaosPublisherConfig

process.stdin.on('end', () => process.exit(70)).resume() // whoever started this is gone

const publishing = startPublishing(config, (count) => process.stdout.write(`${JSON.stringify({ count })}\n`))
await runUntilSignal({ start: async () => undefined, stop: () => publishing.stop() })
process.stdin.unref()
