import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { createCatalog } from '../../src/core/catalog.ts'
import type { MountOptions } from '../../src/core/mount.ts'
import { createPageHandler } from '../../src/explorer/index.ts'
import { addToken } from '../../src/server/auth/token-file.ts'
import { serveHttp } from '../../src/server/http/serve-http.ts'

export interface ExploredHere {
  /** The address of the page. */
  readonly url: string
  /** The only valid token, if the server requires one. */
  readonly token: string
}

/** Serves mounts of this process with the built explorer, until the end of the file. */
export function useExplored(): (
  mounts: readonly MountOptions[],
  options?: { asks?: boolean },
) => Promise<ExploredHere> {
  const ends: (() => unknown)[] = []
  afterAll(async () => {
    await Promise.all(ends.map((end) => end()))
  })
  return async (mounts, { asks = false } = {}) => {
    const folder = mkdtempSync(join(tmpdir(), 'hikidashi-explored-'))
    const tokens = join(folder, 'tokens.json')
    const { token } = await addToken(tokens, { roles: [], name: 'reader' })
    const service = await serveHttp({
      ...{ name: 'drawers', version: '1', log: () => {}, host: '127.0.0.1', port: 0, limits: { drain: 100 } },
      view: createCatalog({ mounts }).view,
      pages: await createPageHandler({ folder: join(import.meta.dirname, '../../dist/explorer/page') }),
      ...(asks ? { auth: { tokens } } : {}),
    })
    ends.push(
      () => service.close(),
      () => rmSync(folder, { recursive: true, force: true }),
    )
    return { url: service.url.replace(/mcp$/, ''), token }
  }
}
