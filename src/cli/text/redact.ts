import { redact } from '../../runtime/redact.ts'

/** A connection string that can be shown and used where a password is not needed or asked for. */
export function withoutPassword(url: string): string {
  try {
    const parsed = new URL(url)
    parsed.password = ''
    for (const name of ['password', 'sslpassword']) parsed.searchParams.delete(name)
    return parsed.href
  } catch {
    return redact(url) // a socket path, say
  }
}
