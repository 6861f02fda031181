import { type Command, defineCommand } from '../command.ts'

/** `commitpost version` */
export const versionCommand: Command = defineCommand({
  name: 'version',
  summary: { en: 'Prints the version of the program', ko: '프로그램의 버전을 출력합니다' },
  operands: {},
  options: {},
  run: async ({ globals, terminal, services }) => {
    const version = await services.packageVersion()
    if (globals.json) terminal.printJson({ version })
    else terminal.print(version)
    return 0
  },
})
