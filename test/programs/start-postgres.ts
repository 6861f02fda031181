import { readFile } from 'node:fs/promises'
import { type EmbeddedPostgresOptions, startEmbeddedPostgres } from '../../src/testing/index.ts'

// Starts a server and leaves it running: node start-postgres.js <options as JSON> [stay | leave]
const [options = '{}', then = 'stay'] = process.argv.slice(2)
const server = await startEmbeddedPostgres(JSON.parse(options) as EmbeddedPostgresOptions)
const lock = await readFile(`${server.dataDir}/postmaster.pid`, 'utf8')
console.log(JSON.stringify({ pid: Number(lock.split('\n')[0]), dataDir: server.dataDir, url: server.url }))
if (then === 'stay') process.stdin.resume()
