import { describe, expect, test } from 'vitest'
import { answerSettings } from '../../src/providers/settings/answer.ts'
import { defaultSettingsLimits } from '../../src/providers/settings/tree.ts'
import { redactPhrase } from '../../src/secrets/find.ts'

async function asJson(text: string, steps: readonly string[] = []): Promise<string> {
  const shown = await answerSettings({
    text,
    path: 'compose.yml',
    format: 'yaml',
    want: { kind: 'json', steps },
    policy: { show: 'safe', allow: [] },
    limits: defaultSettingsLimits,
    without: [],
  })
  return 'text' in shown ? shown.text : JSON.stringify(shown)
}

describe('settings as JSON', () => {
  test.each([
    ['an assignment in a list', '- POSTGRES_PASSWORD=composesecret1\n- LOG=debug\n', 'composesecret1'],
    ['an option in a list', '- "--token=flagtok123"\n- --verbose\n', 'flagtok123'],
    ['a command', 'command: mysql -u root -pMyS3cret9 db\nother: 1\n', 'MyS3cret9'],
    ['an assignment before an escape', '- "TOKEN=abc123xyz\\\\"\n- "x"\n', 'abc123xyz'],
    ['an assignment of several lines', '- "API_TOKEN=abc123xyz\\nLOG=debug\\n"\n- last\n', 'abc123xyz'],
    ['a name', 'sk_live_4eC39HqLyjWDarjtT1zdp7dc: keyname\nother: 1\n', 'sk_live_4eC39HqLyjWDarjtT1zdp7dc'],
    ['a key torn over a list', '- "-----BEGIN PRIVATE KEY-----"\n- MIIEvQIBADANBgkqhkiG9w0BAQEF\n- after\n', 'MIIEvQ'],
  ])('stay valid JSON after %s is removed', async (_, text, secret) => {
    const shown = await asJson(text)
    expect(shown).toContain('[redacted]')
    expect(shown).not.toContain(secret)
    expect(() => JSON.parse(shown)).not.toThrow()
  })

  test('redact the value that follows an option such as --password in a list', async () => {
    const text =
      'args: [--password, flagpw456, --port, "1", --auth, --verbose]\ncommand:\n  - --requirepass\n  - redisreq\n'
    expect(JSON.parse(await asJson(text))).toEqual({
      args: ['--password', '[redacted]', '--port', '1', '--auth', '--verbose'],
      command: ['--requirepass', '[redacted]'],
    })
  })

  test('keep the values that are not secret', async () => {
    const shown = await asJson('- POSTGRES_PASSWORD=composesecret1\n- LOG=debug\n')
    expect(JSON.parse(shown)).toEqual(['POSTGRES_PASSWORD=[redacted]', 'LOG=debug'])
  })
})

describe('a settings file in its original text', () => {
  test.each([
    ['a connection string in YAML', 'yaml', 'greeting: host=x password=correct-horse\n', 'correct-horse'],
    [
      'two connection strings in YAML',
      'yaml',
      'a: host=x password=correct-horse\nb: host=y password=battery-staple\n',
      'battery-staple',
    ],
    ['an assignment in TOML', 'toml', 'start = "host=x password=correct-horse"\n', 'correct-horse'],
    ['an assignment in JSON', 'json', '{ "start": "host=x password=correct-horse" }', 'correct-horse'],
  ] as const)('is shown without the secret in a value: %s', async (_, format, text, secret) => {
    for (const path of ['notes.md', 'a.txt', 'conf.js', 'conf.py', `app.${format}`]) {
      const shown = await answerSettings({
        ...{ text, path, format, want: { kind: 'source' }, policy: { show: 'safe', allow: [] } },
        ...{ limits: defaultSettingsLimits, without: [] },
      })
      expect(shown).toHaveProperty('text', expect.stringContaining('[redacted]'))
      expect(JSON.stringify(shown)).not.toContain(secret)
    }
  })
})

describe('secrets in a text, such as the values of command-line options,', () => {
  test.each([
    ['redis-server --requirepass redisreq98 --port 1', 'redisreq98'],
    ['CMD ["mysql", "--password", "Flagpw456", "db"]', 'Flagpw456'],
    ['"args": [\n  "--token",\n  "flagtok123"\n]', 'flagtok123'],
    ['秘密: naisho7', 'naisho7'],
  ])('are redacted in %s', (text, secret) => {
    const shown = redactPhrase(text)
    expect(shown).toContain('[redacted]')
    expect(shown).not.toContain(secret)
  })

  test.each(['["--password", "--verbose"]', '["--port", "8080"]', "parse('--token', 'required')"])(
    'are not found in %s',
    (text) => expect(redactPhrase(text)).toBe(text),
  )
})
