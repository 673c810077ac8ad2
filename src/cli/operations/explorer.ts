import { isResourceError } from '../../core/errors.ts'
import { isLoopback } from '../../core/host.ts'
import type { Log } from '../../core/log.ts'
import type { Page } from '../../explorer/index.ts'
import { failed } from '../terminal/exit.ts'

/** Settings of the page in a configuration. */
interface PageSettings {
  readonly explorer?: boolean
  readonly path?: string
}

/** The page of a service over HTTP. `undefined`: it has none. */
export async function openPage(
  { explorer, path = '/mcp' }: PageSettings = {},
  { host }: { readonly host: string },
  log: Log,
): Promise<Page | undefined> {
  if (!(explorer ?? isLoopback(host))) return undefined
  // MCP itself is in the place of the page.
  if (path.endsWith('/')) {
    if (explorer) throw failed(`The explorer has no place where http.path is "${path}": let that end with a name.`)
    return undefined
  }
  const { createPage } = await import('../../explorer/index.ts')
  try {
    return await createPage({ path })
  } catch (error) {
    if (!isResourceError(error)) throw error
    if (explorer) throw failed(error.message)
    log('warn', 'the explorer is not served', { reason: error.message })
    return undefined
  }
}

/** The address of the page beside an MCP endpoint. */
export function pageOf(url: string): string {
  return url.slice(0, url.lastIndexOf('/') + 1)
}
