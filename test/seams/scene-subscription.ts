/** What may be said of the one subscription of a scene. */
export interface SceneSubscription {
  readonly order: 'none' | 'aggregate'
  readonly startFrom?: 'now' | 'beginning'
  /** Whether what is started after the handlers are mended has a policy that sends on what died before. */
  readonly hasPolicy?: boolean
  /** Whether whoever publishes tells the workers of other processes. */
  readonly notify?: boolean
}
