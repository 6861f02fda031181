// Up to the last @ of the word: a password may hold any character, and hiding too much is the right mistake.
const PASSWORD_IN_URL = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)\S*@/gi
const PASSWORD_PARAMETER = /(\b(?:password|sslpassword|passwd|pwd)\s*=\s*)[^\s&;'"]+/gi

/** The text without the passwords of connection strings in it. */
export function redact(text: string): string {
  return text.replace(PASSWORD_IN_URL, '$1***@').replace(PASSWORD_PARAMETER, '$1***')
}
