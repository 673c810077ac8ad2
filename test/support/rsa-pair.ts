import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sharedVariable } from './run-folders.ts'

/** A pair of RSA keys for a stand-in, made once for all files of a run of tests: it takes the processor up to half a second. */
export function rsaPair(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  const shared = process.env[sharedVariable]
  if (shared === undefined) return generateKeyPairSync('rsa', { modulusLength: 2048 })
  const file = join(shared, 'rsa.pem')
  if (!existsSync(file)) {
    mkdirSync(shared, { recursive: true })
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    // Another file may make one at the same time: any of them does.
    writeFileSync(`${file}.${process.pid}`, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    renameSync(`${file}.${process.pid}`, file)
  }
  const privateKey = createPrivateKey(readFileSync(file))
  return { publicKey: createPublicKey(privateKey), privateKey }
}
