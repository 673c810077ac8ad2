import type { Principal } from '../core/provider.ts'
import type { OverviewSources } from './overview.ts'
import { adviceOn, mountName, plainText, type Row, rowsFor } from './overview-text.ts'

/** Maximum number of listed mounts. */
const maxMounts = 1000

/**
 * Writes `/llms.txt` (llmstxt.org) for a principal: the mounts in which the principal may see something, with their addresses. It
 * opens no mount.
 *
 * @param endpoint URL of the MCP endpoint.
 */
export async function writeLlms(sources: OverviewSources, principal: Principal, endpoint: string): Promise<string> {
  const rows = await rowsFor(sources, principal)
  const count = `${rows.length.toLocaleString('en')} ${rows.length === 1 ? 'mount' : 'mounts'}`
  const more = rows.length - maxMounts
  return [
    `# ${plainText(sources.name)}`,
    '',
    `> This server serves ${rows.length === 0 ? 'data' : count} as MCP resources, to read only. An MCP client reads them at ${endpoint}.`,
    '',
    ...(rows.length === 0 ? ['Nothing is mounted.'] : adviceOn(rows)),
    ...(rows.length === 0 ? [] : ['', '## Mounts', '', ...rows.slice(0, maxMounts).map(linkTo)]),
    ...(more > 0 ? [`- There are ${more.toLocaleString('en')} more mounts.`] : []),
    '',
  ].join('\n')
}

function linkTo({ mount, address }: Row): string {
  const { title, kind } = mountName(mount)
  // In angle brackets a parenthesis does not end the address.
  const target = /[()]/.test(address) ? `<${address}>` : address
  return `- [${plainText(title === '' ? kind : title)}](${target})${title === '' ? '' : `: ${kind}`}`
}
