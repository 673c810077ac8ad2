import { afterEach, expect, test } from 'vitest'
import { configText } from '../../src/cli/commands/init.ts'
import { serversIn, surveyForInit } from '../../src/cli/operations/survey.ts'
import { createFolder, type Folder } from '../support/folder.ts'

let folder: Folder
afterEach(() => folder.remove())

test('the configuration of init proposes the servers in settings files of hosts as comments, without their secrets', async () => {
  folder = createFolder()
  const token = `ghp_${'a1B2'.repeat(9)}`
  folder.write({
    '.mcp.json': JSON.stringify({
      mcpServers: {
        notes: {
          command: 'npx',
          args: ['-y', '@example/notes', '--token', token],
          env: { NOTES_TOKEN: 'hunter2-hunter2' },
        },
        self: { command: 'npx', args: ['hikidashi', 'serve'] },
        'bad\nname': { command: 'x' },
        odd: 5,
      },
    }),
    '.vscode/mcp.json': `{ // comment
      "servers": { "Team Server": { "type": "http", "url": "https://mcp.example.org/mcp", "headers": { "X-Api-Key": "hunter2" } } },
    }`,
  })
  const found = await serversIn(folder.root)
  expect(found.map(({ name }) => name)).toEqual(['notes', 'Team Server'])
  const text = configText(folder.root, 'file:///x', await surveyForInit(folder.root))
  expect(text).not.toMatch(/hunter2|ghp_/)
  expect(text).toContain(
    '// "mcp://team-server": {"provider":"remote","url":"https://mcp.example.org/mcp","headers":{"X-Api-Key":{"env":"X_API_KEY"}}},',
  )
  expect(text).toContain('"env":{"NOTES_TOKEN":{"env":"NOTES_TOKEN"}}')
  for (const line of text.split('\n')) if (line.includes('"remote"')) expect(line.trim()).toMatch(/^\/\//)
})

test('a settings file that is missing or not JSON has no servers', async () => {
  folder = createFolder()
  expect(await serversIn(folder.root)).toEqual([])
  folder.write({ '.mcp.json': '{"mcpServers": ' })
  expect(await serversIn(folder.root)).toEqual([])
})
