import type { Host } from '../types.ts'
import { claudeCode } from './claude-code.ts'
import { claudeDesktop } from './claude-desktop.ts'
import { codex } from './codex.ts'
import { cursor } from './cursor.ts'
import { geminiCli } from './gemini-cli.ts'
import { goose } from './goose.ts'
import { opencode } from './opencode.ts'
import { vscode } from './vscode.ts'
import { zed } from './zed.ts'

/** The hosts whose files are known. */
export const hosts: readonly Host[] = [
  claudeCode,
  claudeDesktop,
  vscode,
  cursor,
  codex,
  geminiCli,
  goose,
  opencode,
  zed,
]
