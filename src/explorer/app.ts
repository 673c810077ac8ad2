import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { ResourceError } from '../core/errors.ts'
import { doneOnce } from '../core/kit/once.ts'
import type { ToolApp } from '../core/tool.ts'

/** Returns the explorer as an MCP App: one HTML file, which `npm run build` makes. The file is read at the first request. */
export function createExplorerApp(file = builtApp()): ToolApp {
  const html = doneOnce(() =>
    readFile(file, 'utf8').catch((cause: unknown) => {
      throw new ResourceError('unavailable', 'The explorer is not built. Build it with: npm run build', {}, { cause })
    }),
  )
  return { uri: 'ui://hikidashi/explorer', html }
}

/** The built file: beside this module in `dist`, or in `dist` when this module runs from `src`. */
export function builtApp(): string {
  return fileURLToPath(new URL('../../dist/explorer/app/index.html', import.meta.url))
}
