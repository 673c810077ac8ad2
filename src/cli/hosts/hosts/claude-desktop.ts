import { misused } from '../../terminal/exit.ts'
import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { applicationFolder, type Host, joined, type Place } from '../types.ts'
import { claudeCode } from './claude-code.ts'

const spelling: Spelling = {
  otherwise: 'Let the configuration read it from a file instead: { "file": "path" }.',
}

const folderOf = (place: Place) => joined(place, applicationFolder(place), 'Claude')

export const claudeDesktop: Host = {
  id: 'claude-desktop',
  title: 'Claude Desktop',
  format: 'json',
  refuses: { comments: true, trailingCommas: true },
  resources: 'The user attaches them from the + menu.',
  docs: 'https://modelcontextprotocol.io/docs/develop/connect-local-servers',
  files: { user: (place) => [joined(place, folderOf(place), 'claude_desktop_config.json')] },
  traces: { programs: [], paths: (place) => [folderOf(place)] },
  serversAt: () => ['mcpServers'],
  entryOf: (launch) => {
    if (launch.transport === 'http')
      throw misused(
        'The settings file of Claude Desktop takes only servers that it starts. Add a URL in its settings, under Connectors; or write a configuration that mounts the server (provider "remote"), and add that configuration.',
      )
    const [command, ...args] = spellCommand(launch, claudeDesktop, spelling)
    return { value: { command, args, ...unlessEmpty('env', spellAll(launch.env, claudeDesktop, spelling)) } }
  },
  foundIn: claudeCode.foundIn,
  waysOf: () => [{ label: 'Or as a file to double-click', text: 'hikidashi bundle mcpb' }],
  next: 'Quit Claude Desktop and start it anew: closing the window is not enough.',
}
