import { type Spelling, spellAll, spellCommand, unlessEmpty } from '../spell.ts'
import { applicationFolder, configFolder, type Host, inProject, joined, type Place } from '../types.ts'
import { claudeCode } from './claude-code.ts'

const spelling: Spelling = {
  otherwise:
    'What it starts has its own environment: leave --env out. For a URL, write a configuration in which hikidashi mounts that server (provider "remote", with a header of { "env": … }), and add that.',
}

const folderOf = (place: Place) => {
  if (place.platform === 'win32') return joined(place, applicationFolder(place), 'Zed')
  return joined(place, place.platform === 'darwin' ? joined(place, place.home, '.config') : configFolder(place), 'zed')
}

export const zed: Host = {
  id: 'zed',
  title: 'Zed',
  format: 'json',
  resources: 'None: it takes tools and prompts. It gets tools instead.',
  docs: 'https://zed.dev/docs/ai/mcp',
  files: {
    user: (place) => [joined(place, folderOf(place), 'settings.json')],
    project: inProject('.zed', 'settings.json'),
  },
  traces: { programs: ['zed', 'zeditor'], paths: (place) => [folderOf(place)] },
  serversAt: () => ['context_servers'],
  entryOf: (launch) => {
    if (launch.transport === 'http')
      return { value: { url: launch.url, ...unlessEmpty('headers', spellAll(launch.headers, zed, spelling)) } }
    const [command, ...args] = spellCommand(launch, zed, spelling)
    return { value: { command, args, env: spellAll(launch.env, zed, spelling) } }
  },
  foundIn: claudeCode.foundIn,
  next: 'Zed takes it at once; its Agent Panel shows whether it runs. In a project, Zed asks whether that is trusted.',
}
