import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createCatalog } from '../../src/core/catalog.ts'
import { type FilesOptions, files } from '../../src/providers/files/index.ts'
import { type HttpService, serveHttp } from '../../src/server/index.ts'
import { createFolder, type Folder } from './folder.ts'

/** More files than the first page has (1,024). */
const numbered = 1200

/** The smallest PNG: one pixel. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/** Every resource of the folder that {@link createSample} makes is below this URI. */
export const sampleAddress = 'file:///sample'

/** Number of resources of the sample, and of pages. */
export const sampleSize = { resources: numbered + 3, pages: 2 }

/** Creates a folder with text, binary and Japanese files, and more files than fit on one page. */
export function createSample(): Folder {
  const folder = createFolder()
  const many = Array.from({ length: numbered }, (_, i) => [`many/${String(i).padStart(4, '0')}.txt`, `file ${i}\n`])
  folder.write({
    ...(Object.fromEntries(many) as Record<string, string>),
    'readme.md': '# Sample\n',
    'pixel.png': Buffer.from(pixel, 'base64'),
    '日本語/引き出し.md': '引き出し\n',
  })
  return folder
}

/** Returns the command that serves a folder at {@link sampleAddress} over stdio. */
export function stdioCommand(folder: Folder): Command {
  return serveCommand(folder.root, '--name', 'sample')
}

/** Returns the command that serves a folder at {@link sampleAddress} without reporting changes. */
export function stillCommand(folder: Folder): Command {
  const config = join(folder.outside, 'still.json')
  const mount = { provider: 'files', root: folder.root, watch: false }
  writeFileSync(config, JSON.stringify({ mounts: { [sampleAddress]: mount } }))
  return serveCommand('--config', config)
}

interface Command {
  readonly command: string
  readonly args: string[]
}

export function serveCommand(...what: readonly string[]): Command {
  const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
  if (!existsSync(cli)) throw new Error('dist/cli/main.js is missing: run npm run build first.')
  return {
    command: process.execPath,
    args: [cli, 'serve', ...what, '--only', 'files', '--stdio', '--log-level', 'error'],
  }
}

/** Serves a folder at {@link sampleAddress} over HTTP, HTTP+SSE included. */
export async function serveSample(folder: Folder, options: Partial<FilesOptions> = {}): Promise<HttpService> {
  const provider = await files({ root: folder.root, log: () => {}, ...options })
  const catalog = createCatalog({ mounts: [{ address: sampleAddress, provider }] })
  const service = await serveHttp({
    view: (principal) => catalog.view(principal),
    name: 'sample',
    version: '0',
    log: () => {},
    host: '127.0.0.1',
    port: 0,
    sse: true,
    limits: { drain: 500 },
  })
  return {
    url: service.url,
    meter: service.meter,
    close: async () => {
      await service.close()
      await catalog.close()
    },
  }
}
