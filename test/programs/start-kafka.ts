import { startKafka } from '../support/kafka/broker.ts'

// Starts a broker and leaves it running: node start-kafka.js
const server = await startKafka()
console.log(JSON.stringify({ pid: server.pid, directory: server.directory }))
process.stdin.resume()
