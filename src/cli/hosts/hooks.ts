import { opencodePlugin } from './opencode-plugin.ts'
import { configFolder, environmentValue, type Host, isPlainData, joinPath, projectFile } from './types.ts'

export interface HookQuestion {
  readonly prompt: string
  readonly folder: string
}

type Environment = Readonly<Record<string, string | undefined>>

interface PromptHook {
  readonly event: string
  /**
   * The environment variable with the folder of the project, if the host sets one. The agent may have changed its own
   * folder.
   */
  readonly folder?: string
  /** The files of the host's hooks, if they are not in its settings file. */
  readonly files?: Host['files']
  /** The unit of time-outs in the file of hooks, in milliseconds. Default 1. */
  readonly unitMs?: number
  /**
   * The version that the file of hooks must name, if any. Hooks in a file with a version are plain commands, without
   * groups.
   */
  readonly fileVersion?: number
  readonly plugin?: (words: readonly string[]) => string
}

export const promptHooks: Readonly<Record<string, PromptHook>> = {
  'claude-code': {
    ...{ event: 'UserPromptSubmit', folder: 'CLAUDE_PROJECT_DIR', unitMs: 1000 },
    files: {
      user: (machine) => [
        joinPath(
          machine,
          environmentValue(machine, 'CLAUDE_CONFIG_DIR') ?? joinPath(machine, machine.home, '.claude'),
          'settings.json',
        ),
      ],
      project: projectFile('.claude', 'settings.json'),
    },
  },
  codex: {
    ...{ event: 'UserPromptSubmit', unitMs: 1000 },
    files: {
      user: (machine) => [
        joinPath(
          machine,
          environmentValue(machine, 'CODEX_HOME') ?? joinPath(machine, machine.home, '.codex'),
          'hooks.json',
        ),
      ],
      project: projectFile('.codex', 'hooks.json'),
    },
  },
  // Cursor reads `additional_context` in the answer (seen in 3.20.17), which its documentation does not name.
  cursor: {
    ...{ event: 'beforeSubmitPrompt', folder: 'CURSOR_PROJECT_DIR', unitMs: 1000, fileVersion: 1 },
    files: {
      user: (machine) => [joinPath(machine, machine.home, '.cursor', 'hooks.json')],
      project: projectFile('.cursor', 'hooks.json'),
    },
  },
  'gemini-cli': { event: 'BeforeAgent', folder: 'GEMINI_PROJECT_DIR', unitMs: 1 },
  opencode: {
    event: 'chat.message',
    plugin: opencodePlugin,
    files: {
      user: (machine) => [joinPath(machine, configFolder(machine), 'opencode', 'plugins', 'hikidashi.js')],
      project: projectFile('.opencode', 'plugins', 'hikidashi.js'),
    },
  },
}

/** Returns `undefined` for another event, and for an input without a prompt or a folder. */
export function parseHookQuestion(host: string, value: unknown, env: Environment): HookQuestion | undefined {
  const hook = promptHooks[host]
  if (hook === undefined || !isPlainData(value) || typeof value.prompt !== 'string') return undefined
  const { hook_event_name: event = hook.event, prompt, cwd, workspace_roots: roots } = value
  const folder =
    (hook.folder && env[hook.folder]) || (cwd ?? (Array.isArray(roots) ? (roots[0] as unknown) : undefined))
  return event === hook.event && typeof folder === 'string' && folder !== '' ? { prompt, folder } : undefined
}

export function formatHookAnswer(host: string, text: string): string {
  if (host === 'cursor') return `${JSON.stringify({ continue: true, additional_context: text })}\n`
  const hookEventName = promptHooks[host]?.event
  return `${JSON.stringify({ hookSpecificOutput: { hookEventName, additionalContext: text } })}\n`
}
