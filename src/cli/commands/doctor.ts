import type { Finding } from '../../inspect/finding.ts'
import { findingText } from '../../inspect/finding-texts.ts'
import type { DoctorReport } from '../../inspect/proof.ts'
import { redact } from '../../runtime/redact.ts'
import { displayWidth, pad } from '../../runtime/width.ts'
import { type Command, defineCommand, type Invocation } from '../command.ts'
import { loadCatalogue } from '../load-catalogue.ts'
import { flag, text } from '../option-spec.ts'
import type { Style } from '../terminal.ts'
import { safeLine } from '../text/safe.ts'
import { withDatabase } from '../with-database.ts'

/** `commitpost doctor` */
export const doctorCommand: Command = defineCommand({
  name: 'doctor',
  summary: {
    en: 'Looks for everything that can be wrong with the server, the tables and the workers',
    ko: '서버, 테이블, 워커에 문제가 있는지 검사합니다',
  },
  details: {
    en: 'Only reads. Ends with 0 if there is no problem and with 3 if there is one; with --strict warnings count too.',
    ko: '읽기만 합니다. 문제가 없으면 0, 있으면 3으로 끝납니다. --strict이면 주의도 문제로 칩니다.',
  },
  operands: {},
  options: {
    config: text('FILE', {
      en: "A worker's config file, for the types of events that its catalogue knows",
      ko: '카탈로그의 이벤트 유형을 알기 위한 워커 설정 파일입니다',
    }),
    strict: flag({ en: 'End with 3 on warnings too', ko: '주의가 있어도 3으로 끝납니다' }),
  },
  run: async (invocation) => {
    const { terminal, globals, values } = invocation
    const known = await loadCatalogue(values.config, invocation)
    const eventTypes = known?.catalogue.events.map(({ storedAs }) => storedAs)
    return withDatabase(invocation, async ({ proof }) => {
      const report = inWords(await proof.doctor(eventTypes === undefined ? {} : { eventTypes }), invocation)
      if (globals.json) terminal.printJson({ schema: globals.schema, ...report })
      else printReport(report, invocation)
      const isFine = report.severity === 'ok' || (report.severity === 'warning' && !values.strict)
      return isFine ? 0 : 3
    })
  },
})

function inWords(report: DoctorReport, { messages, formats }: Invocation<unknown>): DoctorReport {
  const findings = report.findings.map((finding): Finding => {
    const { message, advice } = findingText(finding, messages.proof.doctor.findings, formats)
    return { ...finding, message: redact(message), advice }
  })
  return { ...report, findings }
}

const STYLES: Readonly<Record<Finding['severity'], Style>> = {
  ok: 'good',
  warning: 'warning',
  problem: 'bad',
}

function printReport({ findings }: DoctorReport, { terminal, messages, formats }: Invocation<unknown>): void {
  const { severities, checks, summary } = messages.proof.doctor
  const widest = (texts: readonly string[]): number => Math.max(...texts.map(displayWidth))
  const [severityWidth, checkWidth] = [widest(Object.values(severities)), widest(Object.values(checks))]
  for (const { severity, check, message, advice } of findings) {
    const head = terminal.style(STYLES[severity], pad(severities[severity], severityWidth))
    terminal.print(`${head}  ${pad(checks[check], checkWidth)}  ${safeLine(message)}`)
    if (advice !== null) terminal.print(`${' '.repeat(severityWidth + checkWidth + 4)}${safeLine(advice)}`)
  }
  const count = (wanted: Finding['severity']): string =>
    formats.count(findings.filter(({ severity }) => severity === wanted).length)
  terminal.note(summary(count('problem'), count('warning')))
}
