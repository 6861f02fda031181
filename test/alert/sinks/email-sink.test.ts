import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createTransport } from 'nodemailer'
import { SMTPServer } from 'smtp-server'
import { expect, test } from 'vitest'
import { emailSink } from '../../../src/alert/sinks/email-sink.ts'
import { deadLetterAlert } from '../support.ts'

interface Mail {
  readonly from: string
  readonly to: readonly string[]
  readonly source: string
}

/** A real mail server that keeps what it gets, or refuses it. */
async function startMailServer(refuses = false) {
  const mails: Mail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData: (stream, session, done) => {
      const { mailFrom, rcptTo } = session.envelope
      void text(stream).then((source) => {
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          source,
        })
        done(refuses ? new Error('mailbox full') : null)
      })
    },
  })
  server.on('error', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    mails,
    transport: createTransport({ host: '127.0.0.1', port, secure: false, ignoreTLS: true }),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}

const forever = new AbortController().signal
const people = { from: 'outbox@shop.example', to: ['oncall@shop.example', 'lead@shop.example'] }

/** Long lines of a mail are folded, and its headers may be written in encoded words (RFC 2047). */
function unfolded(source: string): string {
  const bytes = (word: string): string =>
    decodeURIComponent(word.replaceAll('_', ' ').replaceAll(/=([0-9A-F]{2})/g, '%$1'))
  return source
    .replaceAll(/\r\n[ \t]/g, ' ')
    .replaceAll(/\?= =\?UTF-8\?Q\?/g, '')
    .replaceAll(/=\?UTF-8\?Q\?(.*?)\?=/g, (_, word: string) => bytes(word))
}

test('D5 an alert is mailed through a real SMTP server, as plain text', async () => {
  await using server = await startMailServer()
  await emailSink({ transport: server.transport, ...people }).send(deadLetterAlert(), forever)
  expect(server.mails).toMatchObject([{ from: people.from, to: people.to }])
  const source = unfolded(server.mails[0]?.source ?? '')
  expect(source).toContain('Subject: [shop] DLQ ALERT: OrderPlaced failed for good for subscription "mailer"')
  expect(source).toMatch(/^Content-Type: text\/plain/m)
  expect(source).toContain('Auto-Submitted: auto-generated')
  expect(source).toMatch(/^X-Commitpost-Alert: 01a1e1c7-5e93-776f-936a-babd9723946b/m)
})

test('a line end in a title begins no header', async () => {
  await using server = await startMailServer()
  const title = 'Placed\r\nBcc: thief@example.com'
  await emailSink({ transport: server.transport, from: people.from, to: 'oncall@shop.example' }).send(
    deadLetterAlert({ title }),
    forever,
  )
  const [mail] = server.mails
  expect(mail?.to).toEqual(['oncall@shop.example'])
  expect(unfolded(mail?.source.split('\r\n\r\n')[0] ?? '')).not.toMatch(/^Bcc:/m)
})

test('a server that refuses is a failure, for the sender to try again', async () => {
  await using server = await startMailServer(true)
  const sent = emailSink({ transport: server.transport, ...people }).send(deadLetterAlert(), forever)
  await expect(sent).rejects.toThrow('mailbox full')
})
