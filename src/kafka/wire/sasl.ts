import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { BrokerConnection } from './broker-connection.ts'
import {
  API,
  readSaslAuthenticate,
  readSaslHandshake,
  saslAuthenticateRequest,
  saslHandshakeRequest,
} from './requests.ts'
import { WireError } from './wire-error.ts'

/** Who this client is, as kafkajs has it. */
export interface SaslCredentials {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
  readonly username: string
  readonly password: string
}

const AUTHENTICATION_FAILED = 58
const NONCE_BYTES = 24
const DIGESTS = {
  'scram-sha-256': { name: 'sha256', bytes: 32 },
  'scram-sha-512': { name: 'sha512', bytes: 64 },
} as const

/** Proves to a broker who this client is. @throws WireError where it does not believe. */
export async function authenticate(
  connection: BrokerConnection,
  credentials: SaslCredentials,
): Promise<void> {
  const { mechanism, username, password } = credentials
  const say = async (text: string): Promise<string> => {
    const request = saslAuthenticateRequest(Buffer.from(text))
    return readSaslAuthenticate(await connection.ask(API.saslAuthenticate, request)).toString()
  }
  readSaslHandshake(await connection.ask(API.saslHandshake, saslHandshakeRequest(mechanism.toUpperCase())))
  if (mechanism === 'plain') await say(`\0${username}\0${password}`)
  else await scram(say, DIGESTS[mechanism], credentials)
}

/** RFC 5802, without channel binding. */
async function scram(
  say: (text: string) => Promise<string>,
  digest: (typeof DIGESTS)[keyof typeof DIGESTS],
  { username, password }: SaslCredentials,
): Promise<void> {
  const nonce = randomBytes(NONCE_BYTES).toString('base64')
  const first = `n=${username.replaceAll('=', '=3D').replaceAll(',', '=2C')},r=${nonce}`
  const answer = await say(`n,,${first}`)
  const { r: whole = '', s: salt = '', i: rounds = '' } = attributesOf(answer)
  if (!whole.startsWith(nonce)) throw new WireError(AUTHENTICATION_FAILED, 'to prove that it heard us')
  const hmac = (key: Buffer, text: string): Buffer => createHmac(digest.name, key).update(text).digest()
  const salted = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(rounds), digest.bytes, digest.name)
  const clientKey = hmac(salted, 'Client Key')
  const last = `c=biws,r=${whole}`
  const all = `${first},${answer},${last}`
  const signature = hmac(createHash(digest.name).update(clientKey).digest(), all)
  const proof = clientKey.map((byte, index) => byte ^ (signature[index] as number))
  const { v: verifier = '' } = attributesOf(await say(`${last},p=${Buffer.from(proof).toString('base64')}`))
  const theirs = Buffer.from(verifier, 'base64')
  const expected = hmac(hmac(salted, 'Server Key'), all)
  if (theirs.length !== expected.length || !timingSafeEqual(theirs, expected)) {
    throw new WireError(AUTHENTICATION_FAILED, 'to prove that it knows the password')
  }
}

function attributesOf(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(text.split(',').map((part) => [part.slice(0, 1), part.slice(2)]))
}
