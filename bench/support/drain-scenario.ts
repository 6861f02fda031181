import { type DrainContender, measureDrain } from './measure-drain.ts'
import type { Bar, Results } from './results.ts'
import type { Scenario } from './scenario.ts'
import { turned } from './turned.ts'

/** A scenario whose contenders each work off a backlog, in turn. */
export function drainsOf(
  name: string,
  contenders: readonly DrainContender[],
  bars: (results: Results) => readonly Bar[],
): Scenario {
  return {
    name,
    contenders: contenders.map((contender) => contender.name),
    method: { contenders },
    run: async (session) => {
      for (const contender of turned(contenders, session.round)) await measureDrain(session, name, contender)
    },
    bars,
  }
}
