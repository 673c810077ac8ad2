import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { type Host, inProject, joined, type Place, saying } from '../types.ts'
import { claudeCode } from './claude-code.ts'

const spelling: Spelling = { variable: (name) => `\${${name}}`, fills: /\$[\w{]/ }

const folderOf = (place: Place) => joined(place, saying(place, 'GEMINI_CLI_HOME') ?? place.home, '.gemini')

export const geminiCli: Host = {
  id: 'gemini-cli',
  title: 'Gemini CLI',
  format: 'json',
  refuses: { comments: false, trailingCommas: true },
  resources: '@ lists them and puts one into the prompt; the model can list and read them. No templates.',
  docs: 'https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md',
  files: {
    user: (place) => [joined(place, folderOf(place), 'settings.json')],
    project: inProject('.gemini', 'settings.json'),
  },
  traces: { programs: ['gemini'], paths: (place) => [folderOf(place)] },
  serversAt: () => ['mcpServers'],
  // Its policies treat the text before the first _ as the whole server name.
  nameOf: (name) => name.replaceAll('_', '-'),
  entryOf: (launch) => {
    if (launch.transport === 'http') {
      const headers = spellAll(launch.headers, geminiCli, spelling)
      return { value: { url: launch.url, type: 'http', ...unlessEmpty('headers', headers) } }
    }
    const [command, ...args] = spellCommand(launch, geminiCli, spelling)
    return { value: { command, args, ...unlessEmpty('env', spellAll(launch.env, geminiCli, spelling)) } }
  },
  foundIn: ({ httpUrl, ...rest }) => {
    const found = claudeCode.foundIn(rest)
    return typeof httpUrl === 'string' ? { ...found, url: httpUrl } : found
  },
  next: 'Start Gemini CLI anew; /mcp lists its servers. It starts servers only in folders that are trusted.',
}
