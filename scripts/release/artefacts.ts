import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, parseDocument } from 'yaml'
import { type OwnPackage, serverJson } from '../../src/cli/operations/publish/manifest.ts'
import { installLinks } from '../badges.ts'
import { addressesOf, type Facts, publishedManifest } from './facts.ts'

/** The texts of the artefacts that are no archives, by their path in the folder of the release. */
export function textArtefacts(root: string, facts: Facts, sha256: string): Readonly<Record<string, string>> {
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`
  return {
    'server.json': json(serverJson(publishedManifest(facts) as unknown as OwnPackage, {})),
    'docker-catalog/server.yaml': catalogEntry(root, facts),
    'docker-catalog/tools.json': readFileSync(join(root, 'deploy/docker-catalog/tools.json'), 'utf8'),
    'buttons.md': buttons(facts),
    'action-usage.yml': actionUsage(facts),
    'homebrew/hikidashi.rb': formula(facts, sha256),
    'claude-plugin/marketplace.json': marketplace(root, facts),
  }
}

/** The entry of Docker's catalog, with the repository and the commit that Docker builds. */
function catalogEntry(root: string, facts: Facts): string {
  const { web, icon } = addressesOf(facts)
  const entry = parseDocument(readFileSync(join(root, 'deploy/docker-catalog/server.yaml'), 'utf8'))
  entry.commentBefore = null
  if (isMap(entry.contents)) entry.contents.commentBefore = null
  entry.setIn(['about', 'icon'], icon)
  entry.set('source', entry.createNode({ project: web, commit: facts.commit }))
  return entry.toString({ lineWidth: 0 })
}

/** The command with which a host starts the published package for the folder that it works in. */
export const npxServer = ({ manifest: { name } }: Facts) => ({
  command: 'npx',
  args: ['-y', name, 'serve', '$' + '{workspaceFolder}', '--stdio'],
})

function buttons(facts: Facts): string {
  const { vscode, cursor } = installLinks({ name: facts.manifest.name, ...npxServer(facts) })
  return `[![Add to VS Code](docs/images/add-to-vscode.svg)](${vscode}) [![Add to Cursor](docs/images/add-to-cursor.svg)](${cursor})\n`
}

/** A step of a workflow that uses the action at this commit. */
function actionUsage(facts: Facts): string {
  return `- uses: ${addressesOf(facts).action} # v${facts.manifest.version}
  id: context
  with:
    query: how are retries counted
    budget: 16k
`
}

function formula(facts: Facts, sha256: string): string {
  const { web, tarball } = addressesOf(facts)
  return `class Hikidashi < Formula
  desc "Serve files, databases and other data as Model Context Protocol resources"
  homepage "${web}"
  url "${tarball}"
  sha256 "${sha256}"
  license "${facts.manifest.license}"

  depends_on "node"

  def install
    system "npm", "install", *std_npm_args
    bin.install_symlink libexec.glob("bin/*")
  end

  test do
    (testpath/"note.md").write "# Retry policy\\n"
    assert_match "note.md", shell_output("#{bin}/hikidashi ls --only files")
  end
end
`
}

/** The marketplace of plugins for Claude Code, with the address of its owner. */
function marketplace(root: string, facts: Facts): string {
  const { owner, web } = addressesOf(facts)
  const written = JSON.parse(readFileSync(join(root, '.claude-plugin/marketplace.json'), 'utf8'))
  const plugins = written.plugins.map((plugin: object) => ({ ...plugin, homepage: web, repository: web }))
  return `${JSON.stringify({ ...written, owner: { ...written.owner, url: owner }, plugins }, undefined, 2)}\n`
}
