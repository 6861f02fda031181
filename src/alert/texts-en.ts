import type { AlertTexts } from './texts.ts'

const of = (subscription: string): string => `subscription "${subscription}"`

/** English. */
export const en: AlertTexts = {
  headings: {
    alarm: 'ALERT',
    deadLetter: 'DLQ ALERT',
    recovered: 'RECOVERED',
    notice: 'NOTICE',
    report: 'REPORT',
    advice: 'What to do',
  },
  facts: {
    deadLetter: 'Dead Letter',
    eventId: 'Event ID',
    eventType: 'Event Type',
    aggregate: 'Aggregate',
    subscription: 'Subscription',
    stream: 'Stream',
    traceId: 'Trace ID',
    retryCount: 'Retry Count',
    error: 'Error',
    failedAt: 'Failed At',
    value: 'Now',
    threshold: 'Threshold',
    since: 'First Seen',
    pausedBy: 'Paused By',
    pending: 'Pending',
    processing: 'Processing',
    oldestPending: 'Oldest Pending',
    dead: 'Dead',
    workers: 'Live Workers',
    worker: 'Worker',
    lastSeen: 'Last Seen',
    unresolved: 'Unresolved',
    oldest: 'Oldest',
  },
  conditions: {
    unresolved: ({ value }) => `Dead letters that wait for a person: ${value}`,
    stuckPending: ({ subscription, value, stuckAfter }) =>
      `Deliveries of ${of(subscription)} that have been pending for over ${stuckAfter}: ${value}`,
    unpublished: ({ subscription, value }) =>
      `Deliveries of ${of(subscription)} that are not done yet: ${value}`,
    oldestPending: ({ subscription, value }) =>
      `The oldest pending delivery of ${of(subscription)} has waited for ${value}`,
    dead: ({ subscription, value }) => `Dead letters of ${of(subscription)} that wait for a person: ${value}`,
    meanRetries: ({ subscription, value }) =>
      `Deliveries of ${of(subscription)} were retried ${value} times on average of late`,
    eventRate: ({ value }) => `Events are published at ${value} per second`,
    workerMissing: ({ subscription, value }) =>
      `No live worker serves ${of(subscription)}, and its oldest delivery has waited for ${value}`,
    streamGap: ({ subscription, reason }) =>
      `The log of ${of(subscription)} has lost events (${reason}): they are delivered from the table`,
  },
  recovered: {
    unresolved: () => 'Few or no dead letters wait for a person again',
    stuckPending: (subscription) => `Deliveries of ${of(subscription)} are not stuck any more`,
    unpublished: (subscription) => `The backlog of ${of(subscription)} is small again`,
    oldestPending: (subscription) => `Deliveries of ${of(subscription)} do not wait for long any more`,
    dead: (subscription) => `Few or no dead letters of ${of(subscription)} wait for a person again`,
    meanRetries: (subscription) => `Deliveries of ${of(subscription)} are seldom retried again`,
    eventRate: () => 'Fewer events are published per second again',
    workerMissing: (subscription) => `${of(subscription)} is served again, or nothing waits for it`,
    streamGap: (subscription) => `The log of ${of(subscription)} has lost nothing of late`,
  },
  advice: {
    unresolved: () => 'commitpost dlq list shows them. Fix the cause, then retry or resolve them.',
    stuckPending: () =>
      'commitpost status shows what waits. Are workers running, is it paused, does its handler hang? commitpost dlq blocked shows keys that a dead letter blocks.',
    unpublished: () => 'commitpost status shows what waits. Start more workers, or raise its concurrency.',
    oldestPending: () =>
      'commitpost status shows what waits. Start more workers, or look for what keeps failing: commitpost dlq blocked shows keys that a dead letter blocks.',
    dead: (subscription) =>
      `commitpost dlq list --subscription ${subscription} shows them. Its handler, or what it calls, is failing.`,
    meanRetries: () =>
      'Its handler, or what it calls, is unsteady: see the warnings in the log of its workers.',
    eventRate: () =>
      'Beyond 1,000 events per second, or where less than 500 ms matters, the log stream or change data capture serves better than a polled table.',
    streamGap: () =>
      'Some may come twice. Find out who took its replication slot or its publication away, or why the server kept too much for it: docs/log-stream.md lists the reasons.',
    workerMissing: (subscription) =>
      `Start a worker that serves it, or retire it: commitpost retire ${subscription} --operator NAME`,
  },
  pausedAdvice: (subscription) =>
    `It is paused, and no worker takes its deliveries. Once that may end: commitpost resume ${subscription} --operator NAME`,
  logUnread: ({ subscription, value }) =>
    `No live worker serves ${of(subscription)}: nobody has read its log for ${value}, and the server keeps it`,
  deadLetter: (eventType, subscription) =>
    subscription === null
      ? `No subscription takes ${eventType}: it was set aside as a dead letter`
      : `${eventType} failed for good for ${of(subscription)}`,
  deadLetters: (count) => `New dead letters: ${count}`,
  deadLetterAdvice: {
    deliverable: (id) => `commitpost dlq show ${id}, then dlq retry ${id} or dlq resolve ${id}`,
    unmatched: (id) =>
      `commitpost dlq show ${id}. It cannot be retried, for nobody takes it: subscribe and publish it again under a new id, or dlq resolve ${id}`,
    retired: (id) =>
      `commitpost dlq show ${id}. It cannot be retried, for its subscription is retired: publish it again under a new id for another, or dlq resolve ${id}`,
  },
  deadLettersAdvice: 'commitpost dlq list shows them. They are told of together, because they are many.',
  group: (subscription, eventType, errorCode) => `${subscription}, ${eventType}, ${errorCode}`,
  vanished: (count) =>
    count === 1
      ? 'A worker is gone without having stopped'
      : `${count} workers are gone without having stopped`,
  vanishedWorker: (where, lastSeen, subscriptions) =>
    `${where}, last seen ${lastSeen} ago, served ${subscriptions.join(', ') || 'nothing'}`,
  vanishedAdvice:
    'It crashed, was killed, or cannot reach the database. What it had in hand is delivered again.',
  report: 'How the outbox stands',
  reportLine: ({ pending, processing, dead, oldest, pausedBy }) =>
    `pending ${pending}, processing ${processing}, dead ${dead}` +
    `${oldest === null ? '' : `, oldest ${oldest}`}${pausedBy === null ? '' : `, paused by ${pausedBy}`}`,
  oldestLetter: (id, eventType, subscription, age) => `${id}: ${eventType} for ${subscription}, ${age} ago`,
  more: (count) => `and ${count} more`,
  moreThan: (count) => `more than ${count}`,
}
