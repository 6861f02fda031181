import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../find-program.ts'

/** A certificate of 127.0.0.1, signed by itself. */
export interface Certificate {
  /** As text, for clients that are to believe it. */
  readonly pem: string
  /** With its secret, for the server. */
  readonly keystore: string
  readonly password: string
}

const PASSWORD = 'open-sesame'

/** Makes one, in this directory, with what comes with Java. */
export async function makeCertificate(directory: string): Promise<Certificate> {
  const keystore = join(directory, 'keystore.p12')
  const keytool = async (...args: readonly string[]): Promise<string> => {
    const all = [...args, '-alias', 'broker', '-keystore', keystore, '-storepass', PASSWORD]
    const { stdout } = await promisify(execFile)(findProgram('keytool') ?? 'keytool', all)
    return stdout
  }
  await keytool('-genkeypair', '-keyalg', 'EC', '-dname', 'CN=127.0.0.1', '-ext', 'san=ip:127.0.0.1')
  return { pem: await keytool('-exportcert', '-rfc'), keystore, password: PASSWORD }
}
