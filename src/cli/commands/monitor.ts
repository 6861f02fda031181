import { type Command, defineCommand } from '../command.ts'
import { flag, text } from '../option-spec.ts'

/** `commitpost monitor` */
export const monitorCommand: Command = defineCommand({
  name: 'monitor',
  summary: {
    en: 'Looks for what somebody should know, and tells them',
    ko: '알려야 할 것이 있는지 살펴보고 알립니다',
  },
  details: {
    en: 'With --once alone it looks by the default rules, prints what holds, tells nobody and changes nothing.\nWith a config (the one of "worker") it goes by the rules there and tells its sinks. Ends with 1 if anything holds.',
    ko: '--once만 주면 기본 규칙으로 살펴보고 해당하는 것을 출력할 뿐, 아무에게도 알리지 않고 아무것도 바꾸지 않습니다.\n설정 파일("worker"와 같은 것)을 주면 그 규칙을 따르고 그 대상에 알립니다. 해당하는 것이 있으면 1로 끝납니다.',
  },
  operands: {},
  options: {
    once: flag({
      en: 'Look once and end, instead of until SIGTERM or SIGINT',
      ko: 'SIGTERM 또는 SIGINT까지 계속하지 않고 한 번만 살펴봅니다',
    }),
    config: text('FILE', {
      en: 'The config file. Default without --once: commitpost.config.js, .mjs, .ts or .mts',
      ko: '설정 파일입니다. --once가 없을 때의 기본값: commitpost.config.js, .mjs, .ts 또는 .mts',
    }),
  },
  run: async (invocation) => (await import('../run-monitor.ts')).runMonitor(invocation),
})
