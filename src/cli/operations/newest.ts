import { commandFailure } from '../terminal/exit.ts'
import type { Io } from '../terminal/io.ts'

interface Installed {
  readonly version: string
  readonly isPublished: boolean
  readonly registry: string
}

const timeoutMs = 10_000
const maxBytes = 1024 * 1024

/** Returns the URL of the registry that npm uses, as far as environment variables tell. */
export function registryUrlIn(env: Readonly<Record<string, string | undefined>>): string {
  return env.npm_config_registry || env.NPM_CONFIG_REGISTRY || 'https://registry.npmjs.org/'
}

/**
 * Prints the installed version, and whether the registry has a newer one.
 * @throws CommandError if the registry does not answer, or not as a registry does
 */
export async function printNewestVersion(installed: Installed, { out, say }: Pick<Io, 'out' | 'say'>): Promise<void> {
  const { version, isPublished, registry } = installed
  await out.write(`${version}\n`)
  if (!isPublished)
    return say(
      'This is a build of the source. hikidashi is not published yet, so there is no newest version to ask for: a package hikidashi in the registry of npm is not ours.',
    )
  const newest = await newestIn(registry)
  if (newest === undefined) return say(`The registry at ${new URL(registry).host} has no package hikidashi.`)
  if (compare(newest, version) <= 0) return say(`No newer version is published (newest: ${newest}).`)
  say(`Version ${newest} is published. To install it: npm install --global hikidashi@${newest}`)
}

async function newestIn(registry: string): Promise<string | undefined> {
  const url = URL.canParse(registry) ? new URL('hikidashi/latest', registry.replace(/\/*$/, '/')) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw commandFailure('The variable npm_config_registry or NPM_CONFIG_REGISTRY is not an http or https URL.')
  const origin = `${url.origin}${url.pathname}`
  try {
    const response = await fetch(url, {
      signal: AbortSignal.timeout(timeoutMs),
      headers: { Accept: 'application/json' },
    })
    if (response.status === 404) return undefined
    if (!response.ok) throw commandFailure(`${origin} answers ${response.status}: the newest version is not known.`)
    const { version } = JSON.parse(await readResponseText(response)) as { readonly version?: unknown }
    if (typeof version !== 'string' || !/^\d+\.\d+\.\d+[\w.+-]*$/.test(version)) throw new SyntaxError('no version')
    return version
  } catch (error) {
    if (error instanceof SyntaxError)
      throw commandFailure(`${origin} does not answer as a registry of npm: the newest version is not known.`)
    if (!(error instanceof TypeError) && !(error instanceof DOMException)) throw error
    throw commandFailure(`${url.host} does not answer: the newest version is not known. Are you offline?`)
  }
}

async function readResponseText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > maxBytes) throw new SyntaxError('too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** A pre-release comes before its release. */
function compare(a: string, b: string): number {
  const partsOf = (version: string) => {
    const [numbers = '', ...more] = version.split('-')
    return [...numbers.split('.').map(Number), more.length === 0 ? 1 : 0]
  }
  const [first, second] = [partsOf(a), partsOf(b)]
  return first.map((part, at) => part - (second[at] ?? 0)).find((difference) => difference !== 0) ?? 0
}
