import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { configFolder, type Host, joined, type Place } from '../types.ts'
import { isObject, strings, valueAt } from '../values.ts'

const spelling: Spelling = { variable: (name) => `{env:${name}}`, fills: /\{(?:env|file):/ }

const filesIn = (place: Place, ...folder: readonly string[]) =>
  ['opencode.json', 'opencode.jsonc'].map((name) => joined(place, ...folder, name))

const folderOf = (place: Place) => joined(place, configFolder(place), 'opencode')

/** Version 2 keeps servers one level deeper, and still reads the place of version 1. */
const isSecond = (settings: unknown) => {
  const servers = valueAt(settings, ['mcp', 'servers'])
  return isObject(servers) && typeof servers.type !== 'string'
}

export const opencode: Host = {
  id: 'opencode',
  title: 'opencode',
  format: 'json',
  resources: '@ lists all of them and attaches one; newer versions let the model list and read them too.',
  docs: 'https://opencode.ai/docs/mcp-servers/',
  files: {
    user: (place) => filesIn(place, folderOf(place)),
    project: (place) => [...filesIn(place, place.folder), ...filesIn(place, place.folder, '.opencode')],
  },
  traces: { programs: ['opencode'], paths: (place) => [folderOf(place)] },
  serversAt: (settings) => (isSecond(settings) ? ['mcp', 'servers'] : ['mcp']),
  entryOf: (launch, _, settings) => {
    const enabled = isSecond(settings) ? {} : { enabled: true }
    if (launch.transport === 'http') {
      const headers = unlessEmpty('headers', spellAll(launch.headers, opencode, spelling))
      return { value: { type: 'remote', url: launch.url, ...headers, ...enabled } }
    }
    const environment = unlessEmpty('environment', spellAll(launch.env, opencode, spelling))
    return { value: { type: 'local', command: spellCommand(launch, opencode, spelling), ...environment, ...enabled } }
  },
  foundIn: ({ command, url }) => ({
    ...(Array.isArray(command) ? { command: strings(command) } : {}),
    ...(typeof url === 'string' ? { url } : {}),
  }),
  next: 'Start opencode anew; opencode mcp list shows its servers.',
}
