import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The server that `npm start` runs: the links in the README add it to a host. */
const server = { name: 'hikidashi', url: 'http://127.0.0.1:8787/mcp' }

/** A server at an address, or one that the host starts. */
type Installed =
  | { readonly name: string; readonly url: string }
  | { readonly name: string; readonly command: string; readonly args: readonly string[] }

/** Links that add a server to VS Code and Cursor, in the form that each documents. */
export function installLinks({ name, ...server }: Installed) {
  const query = (config: string) => `name=${encodeURIComponent(name)}&config=${encodeURIComponent(config)}`
  const type = 'url' in server ? 'http' : 'stdio'
  return {
    // https://code.visualstudio.com/api/extension-guides/ai/mcp ; a redirect over HTTPS, because GitHub removes `vscode:` links.
    vscode: `https://insiders.vscode.dev/redirect/mcp/install?${query(JSON.stringify({ type, ...server }))}`,
    // https://cursor.com/docs/mcp/install-links
    cursor: `https://cursor.com/en/install-mcp?${query(Buffer.from(JSON.stringify(server)).toString('base64'))}`,
  }
}

/** Returns the line of the README with the badges. */
export function badgeLine(): string {
  const { vscode, cursor } = installLinks(server)
  return `[![Add to VS Code](docs/images/add-to-vscode.svg)](${vscode}) [![Add to Cursor](docs/images/add-to-cursor.svg)](${cursor})`
}

/** A badge as SVG: one line of text in a rounded box, 20 pixels high. */
export function badge(text: string, colour: string): string {
  const width = 16 + Math.round(text.length * 6.6)
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${text}"><title>${text}</title><rect width="${width}" height="20" rx="4" fill="${colour}"/><text x="${width / 2}" y="14" fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">${text}</text></svg>\n`
}

export const badges = {
  'add-to-vscode.svg': badge('Add to VS Code', '#0065a9'),
  'add-to-cursor.svg': badge('Add to Cursor', '#333333'),
} as const

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const root = join(import.meta.dirname, '..')
  for (const [file, text] of Object.entries(badges)) writeFileSync(join(root, 'docs/images', file), text)
  const readme = join(root, 'README.md')
  writeFileSync(readme, readFileSync(readme, 'utf8').replace(/^\[!\[Add to VS Code\].*$/m, badgeLine()))
}
