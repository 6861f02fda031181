import type { SceneSubscription } from './scene-subscription.ts'
import type { Process, Stage } from './stage.ts'

/** A piece of a process's life, small enough to be lived again for every place where it may end. */
export interface Scene {
  readonly name: string
  readonly subscription: SceneSubscription
  /** The operations whose seams are broken in this scene. */
  readonly operations: readonly string[]
  /** Seams that this scene passes in some runs only: they are broken in another, which always passes them. */
  readonly elsewhere?: readonly string[]
  /** What there is before the process begins. */
  prepare(stage: Stage): Promise<void>
  /** What the process does until its work is done. */
  live(stage: Stage, process: Process): Promise<void>
  /** What the next process does first: what a caller does again who was not told that it is done. */
  rescue(stage: Stage, process: Process): Promise<void>
  /** What this scene asks for beyond what all do. Names what is wrong. */
  inspect(stage: Stage): Promise<readonly string[]>
}
