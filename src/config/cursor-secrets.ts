import { resolve } from 'node:path'
import * as z from '../schema/builder.ts'
import { secret, secretFault } from '../schema/fields.ts'
import type { Finding } from './problem.ts'
import { resolveSecret } from './secret.ts'

/** The most secrets that open cursors at once. */
const maxSecrets = 4

/** The shortest secret that is taken, in bytes: half of the key of HMAC-SHA-256. */
const minSecretBytes = 16

/** One secret, or several: the first makes cursors, and all of them open them. */
export const cursorSecrets = z.union([z.array(secret).min(1).max(maxSecrets), secret], {
  error: ({ input }) => secretFault(input),
})

interface Surroundings {
  readonly folder: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The address of the mount that serves a file, if one does. */
  readonly servedBy: (file: string) => string | undefined
}

/** Fetches the secrets of cursors, in their order, and finds what is wrong with them. */
export async function loadCursorSecrets(value: unknown, { folder, env, servedBy }: Surroundings) {
  const values: string[] = []
  const findings: Finding[] = []
  for (const [index, given] of (Array.isArray(value) ? value : [value]).entries()) {
    const { data: source } = secret.safeParse(given)
    if (source === undefined) continue
    const path = Array.isArray(value) ? ['cursorSecret', index] : ['cursorSecret']
    const found = await resolveSecret(source, { folder, env })
    const address = 'file' in source ? servedBy(resolve(folder, source.file)) : undefined
    if ('message' in found) findings.push({ path, message: found.message, fix: found.fix })
    else if (Buffer.byteLength(found.value) < minSecretBytes)
      findings.push({
        path,
        message: `The secret is shorter than ${minSecretBytes} bytes.`,
        fix: 'Use a random one, such as the output of: openssl rand -hex 32.',
      })
    else if (address !== undefined)
      findings.push({
        path,
        message: `The file with the secret lies in the folder that ${JSON.stringify(address)} serves.`,
        fix: 'Move it to a place that is not served.',
      })
    else values.push(found.value)
  }
  return { values, findings }
}
