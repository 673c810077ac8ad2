import { readFile } from 'node:fs/promises'

/** Message when the trust in a configuration could not be stored. */
export const untrustedNote =
  'that you trust this configuration could not be kept in the state folder. Name it with --config, or run: hikidashi trust'

/**
 * Records that the user trusts a configuration that it named, or had written. Resolves to whether that was kept.
 *
 * @param content The bytes that are trusted; by default those in the file.
 */
export async function keepTrust(file: string, content?: Uint8Array): Promise<boolean> {
  const { recordTrust } = await import('../../config/trust.ts')
  return Promise.resolve(content ?? readFile(file))
    .then((bytes) => recordTrust(file, bytes))
    .then(
      () => true,
      () => false,
    )
}
