import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The part of package.json that a release reads. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly license: string
  readonly private?: boolean
  readonly repository?: string | { readonly url: string }
  readonly [key: string]: unknown
}

/** The repository on GitHub. Every address in an artefact follows from it. */
export interface Owner {
  /** The account or organization. */
  readonly account: string
  readonly repository: string
}

/** What all artefacts are made from. */
export interface Facts {
  readonly manifest: Manifest
  readonly owner: Owner
  /** Whether package.json names the owner. Otherwise the artefacts have a placeholder. */
  readonly isOwned: boolean
  /** The commit that is released. */
  readonly commit: string
}

const placeholder: Owner = { account: 'OWNER', repository: 'hikidashi' }

export function readManifest(root: string): Manifest {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
}

/**
 * Reads the facts from package.json: its `repository` is the one place for the address of the owner.
 *
 * @throws Error if `repository` is not a repository on GitHub.
 */
export function factsOf(manifest: Manifest, commit: string): Facts {
  const { repository } = manifest
  if (repository === undefined) return { manifest, owner: placeholder, isOwned: false, commit }
  const url = typeof repository === 'string' ? repository : repository.url
  const [, account, name] =
    /^(?:github:|(?:git\+)?https:\/\/github\.com\/|git\+ssh:\/\/git@github\.com\/)([\w-]+)\/([\w.-]+?)(?:\.git)?\/?$/.exec(
      url,
    ) ?? []
  if (account === undefined || name === undefined)
    throw new Error(
      `"repository" in package.json is ${JSON.stringify(url)}. Write "git+https://github.com/OWNER/REPOSITORY.git": the action, the marketplace and the name in the registry of MCP servers need a repository on GitHub.`,
    )
  return { manifest, owner: { account, repository: name }, isOwned: true, commit }
}

/** The addresses that follow from the owner. */
export function addressesOf({ owner: { account, repository }, manifest: { name, version }, commit }: Facts) {
  const web = `https://github.com/${account}/${repository}`
  return {
    web,
    git: `git+${web}.git`,
    homepage: `${web}#readme`,
    issues: `${web}/issues`,
    owner: `https://github.com/${account}`,
    /** The name in the registry of MCP servers. */
    mcpName: `io.github.${account}/${name}`,
    icon: `https://raw.githubusercontent.com/${account}/${repository}/${commit}/docs/images/mark.svg`,
    tarball: `https://registry.npmjs.org/${name}/-/${name}-${version}.tgz`,
    action: `${account}/${repository}@${commit}`,
    marketplace: `${account}/${repository}`,
  }
}

/** Returns the package.json to publish: with the addresses, and without what only a clone needs. */
export function publishedManifest(facts: Facts): Manifest {
  const { private: _, scripts, devDependencies, allowScripts, ...kept } = facts.manifest
  const { git, homepage, issues, mcpName } = addressesOf(facts)
  return { ...kept, repository: { type: 'git', url: git }, homepage, bugs: { url: issues }, mcpName } as Manifest
}
