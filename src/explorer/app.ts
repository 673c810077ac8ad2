import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { ResourceError } from '../core/errors.ts'
import type { ToolApp } from '../core/tool.ts'

/** The explorer as an MCP App: one file, built by `npm run build`. It is read at the first request. */
export function createExplorerApp(file = builtApp()): ToolApp {
  let read: Promise<string> | undefined
  return {
    uri: 'ui://hikidashi/explorer',
    html: () => {
      read ??= readFile(file, 'utf8').catch((error: unknown) => {
        // A failed read is tried again with the next request.
        read = undefined
        throw new ResourceError(
          'unavailable',
          'The explorer is not built. Build it with: npm run build',
          {},
          { cause: error },
        )
      })
      return read
    },
  }
}

/** The built file: beside this module in `dist`, or in `dist` when this module runs from `src`. */
export function builtApp(): string {
  return fileURLToPath(new URL('../../dist/explorer/app/index.html', import.meta.url))
}
