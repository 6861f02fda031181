/** What may be said of the one subscription of a scene. */
export interface SceneSubscription {
  readonly order: 'none' | 'aggregate'
  readonly startFrom?: 'now' | 'beginning'
  /** Whether a policy is asked for, of a code that nothing here fails with: a person sends on what died. */
  readonly hasPolicy?: boolean
}
