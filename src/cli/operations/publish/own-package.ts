import { readFileSync, realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Facts of this package from its package.json. */
export interface OwnPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly keywords: readonly string[]
  readonly engines: { readonly node: string }
  readonly author?: string
  readonly homepage?: string
  readonly repository?: string | { readonly url: string; readonly directory?: string }
  /** The name in the registry of MCP servers that this package belongs to. */
  readonly mcpName?: string
}

/** The folder of this package. */
export function ownFolder(): string {
  return realpathSync(fileURLToPath(new URL('../../../../', import.meta.url)))
}

export function ownPackage(): OwnPackage {
  return JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')) as OwnPackage
}

/** Description of this package in one sentence. The registry allows 100 characters. */
export const shortDescription = 'Serves folders, databases and other data as MCP resources: listed, searched, read.'
