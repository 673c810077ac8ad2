import { spell, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { applicationFolder, configFolder, type Host, joined, type Launch, type Place, type Value } from '../types.ts'
import { type JsonObject, strings } from '../values.ts'

const description = 'Resources of hikidashi'
const timeout = 300

const folderOf = (place: Place) =>
  place.platform === 'win32'
    ? joined(place, applicationFolder(place), 'Block', 'goose', 'config')
    : joined(place, configFolder(place), 'goose')

export const goose: Host = {
  id: 'goose',
  title: 'Goose',
  format: 'yaml',
  resources: 'The model gets tools that list and read them.',
  docs: 'https://github.com/block/goose/blob/main/documentation/docs/getting-started/using-extensions.md',
  files: { user: (place) => [joined(place, folderOf(place), 'config.yaml')] },
  traces: { programs: ['goose'], paths: (place) => [folderOf(place)] },
  serversAt: () => ['extensions'],
  // Goose finds an extension by its name in lower case.
  nameOf: (name) => name.toLowerCase(),
  entryOf: (launch, { name }) => ({ value: launch.transport === 'http' ? remote(launch, name) : local(launch, name) }),
  foundIn: ({ cmd, args, uri }) => ({
    ...(typeof cmd === 'string' ? { command: [cmd, ...strings(args)] } : {}),
    ...(typeof uri === 'string' ? { url: uri } : {}),
  }),
  waysOf: (launch, { value }, { name }) => {
    // A link cannot contain variables and headers, and Goose accepts few programs from a link.
    const isPlain = value.env_keys === undefined && value.envs === undefined && value.headers === undefined
    if (!isPlain || (launch.transport === 'stdio' && value.cmd !== 'npx')) return []
    const query = new URLSearchParams(
      launch.transport === 'http'
        ? [
            ['url', launch.url],
            ['type', 'streamable_http'],
          ]
        : [['cmd', 'npx'], ...strings(value.args).map((arg): [string, string] => ['arg', arg])],
    )
    for (const [key, text] of [
      ['id', name],
      ['name', name],
      ['description', description],
    ] as const)
      query.append(key, text)
    return [{ label: 'As a link', text: `goose://extension?${query.toString().replaceAll('+', '%20')}` }]
  },
  next: 'Start a new session of Goose.',
}

/** The variables that Goose looks up in its environment or its secret store. */
function variablesIn(values: readonly Value[]): readonly string[] {
  return values.flat().flatMap((piece) => (typeof piece === 'object' && 'variable' in piece ? [piece.variable] : []))
}

function local(launch: Extract<Launch, { transport: 'stdio' }>, name: string): JsonObject {
  const [cmd, ...args] = spellCommand(launch, goose, {})
  const keys = variablesIn(Object.values(launch.env))
  const literal = Object.fromEntries(Object.entries(launch.env).filter(([key]) => !keys.includes(key)))
  return {
    type: 'stdio',
    name,
    description,
    cmd,
    args,
    ...unlessEmpty('envs', spellAll(literal, goose, {})),
    ...unlessEmpty('env_keys', keys),
    enabled: true,
    timeout,
  }
}

function remote({ url, headers }: Extract<Launch, { transport: 'http' }>, name: string): JsonObject {
  const keys = variablesIn(Object.values(headers))
  const spelling = { variable: (variable: string) => `\${${variable}}`, fills: /\$[\w{]/ }
  const written = Object.fromEntries(
    Object.entries(headers).map(([key, value]) => [key, spell(value, goose, spelling)]),
  )
  return {
    type: 'streamable_http',
    name,
    description,
    uri: url,
    ...unlessEmpty('headers', written),
    ...unlessEmpty('env_keys', keys),
    enabled: true,
    timeout,
  }
}
