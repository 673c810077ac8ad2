import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sharedVariable } from './run-folders.ts'

/** Returns a pair of RSA keys for a stand-in, created once for a test run, because that takes up to half a second of CPU. */
export function rsaPair(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  const shared = process.env[sharedVariable]
  if (shared === undefined) return generateKeyPairSync('rsa', { modulusLength: 2048 })
  const file = join(shared, 'rsa.pem')
  if (!existsSync(file)) {
    mkdirSync(shared, { recursive: true })
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    // Another test file may create one at the same time; either is good.
    writeFileSync(`${file}.${process.pid}`, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    renameSync(`${file}.${process.pid}`, file)
  }
  const privateKey = createPrivateKey(readFileSync(file))
  return { publicKey: createPublicKey(privateKey), privateKey }
}
