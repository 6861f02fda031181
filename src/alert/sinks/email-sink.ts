import {
  isRecord,
  methodsProblem,
  recordProblem,
  refuseProblems,
  shown,
  textProblem,
  unknownOptionProblems,
} from '../../runtime/option-checks.ts'
import type { AlertSink } from '../alert.ts'
import { textBlock } from '../text-block.ts'

/** What sends mail: the part of a nodemailer transport that is used. */
export interface MailTransport {
  sendMail(message: {
    readonly from: string
    readonly to: string[]
    readonly subject: string
    readonly text: string
    readonly headers: Record<string, string>
  }): Promise<unknown>
}

/** Who sends to whom, and how. */
export interface EmailSinkOptions {
  /** Your own transport: `nodemailer.createTransport('smtps://user:password@host')`. It is yours to close. */
  readonly transport: MailTransport
  readonly from: string
  readonly to: string | readonly string[]
}

const OPTION_NAMES: readonly (keyof EmailSinkOptions)[] = ['transport', 'from', 'to']
const LONGEST_SUBJECT = 200

/** Mails each alert as plain text. */
export function emailSink(options: EmailSinkOptions): AlertSink {
  refuseProblems('emailSink', emailProblems(options))
  const to = typeof options.to === 'string' ? [options.to] : [...options.to]
  return {
    name: 'e-mail',
    send: async (alert) => {
      // One line: a line end would begin another header.
      const subject = `[${alert.source}] ${alert.heading}: ${alert.title}`.replaceAll(/[\r\n]+/g, ' ')
      await options.transport.sendMail({
        from: options.from,
        to,
        subject: subject.slice(0, LONGEST_SUBJECT),
        text: `${textBlock(alert)}\n\n${alert.key} · ${alert.at.toISOString()}\n`,
        headers: { 'X-Commitpost-Alert': alert.id, 'Auto-Submitted': 'auto-generated' },
      })
    },
  }
}

function emailProblems(options: unknown): readonly (string | null)[] {
  if (!isRecord(options)) return [recordProblem('the argument', options)]
  const { transport, from, to } = options
  const isList = Array.isArray(to) && to.length > 0
  return [
    ...unknownOptionProblems(options, OPTION_NAMES),
    methodsProblem('transport', transport ?? null, ['sendMail']),
    addressProblem('from', from ?? null),
    ...(isList
      ? to.map((one: unknown, n) => addressProblem(`to[${n}]`, one ?? null))
      : [addressProblem('to', to ?? null)]),
  ]
}

function addressProblem(name: string, address: unknown): string | null {
  const problem = textProblem(name, address)
  if (problem !== null) return problem
  return /[\r\n\0]/.test(String(address)) ? `${name} must be on one line, but is ${shown(address)}` : null
}
