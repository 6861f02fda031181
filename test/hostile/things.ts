/** A proxy that was revoked: whatever is asked of it throws. */
export const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** A proxy that throws whenever it is touched. */
export const angry = (): object => {
  const refuse = (): never => {
    throw new Error('do not touch')
  }
  return new Proxy(
    {},
    { get: refuse, has: refuse, ownKeys: refuse, getPrototypeOf: refuse, getOwnPropertyDescriptor: refuse },
  )
}

/** An object that is its own cause. */
export const circular = (): object => {
  const error: Record<string, unknown> = {}
  error['cause'] = error
  return error
}

/** An object that is a promise of its own making. */
export function thenable(
  then: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void,
): object {
  return { then }
}
