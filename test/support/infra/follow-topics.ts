import { readTopics } from '../kafka/records.ts'
import { TOPIC_PREFIX } from './places.ts'

/** The topics that the RFC of ivm names. */
const TOPICS = ['raw_data', 'slice', 'changeset'].map((type) => `${TOPIC_PREFIX}.${type}`)

/** Prints each record as it arrives: topic, key, type and value. */
export function followTopics(bootstrap: string, print: (line: string) => void): Promise<AsyncDisposable> {
  return readTopics(bootstrap, TOPICS, ({ topic, key, headers, value }) =>
    print(`${topic}  ${key}  ${headers['eventType'] ?? ''}  ${value}`),
  )
}
