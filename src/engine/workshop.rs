//! One unlock in an engine: a volume with the files, a container for each command, and nothing left behind.
//!
//! Volume and containers carry our labels, so that what a killed run left is found and removed by the next.

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, VolumeCreateRequest};
use bollard::query_parameters::{
    CreateContainerOptions, DownloadFromContainerOptionsBuilder, KillContainerOptions, LogsOptionsBuilder,
    StartContainerOptions, UploadToContainerOptionsBuilder, WaitContainerOptions,
};
use futures::StreamExt;

use super::connect::{Engine, EngineError, failed, words};
use super::files::{FOLDER, File, MOUNT, Owner, archive, inside, missing};
use super::image::ImageFacts;
use super::leftovers::{labels, remove_container, remove_volume};
use super::steps::{RUNTIME, environment};

/// Bytes of output that are kept.
const OUTPUT: usize = 16 * 1024;

/// What is run, where and as whom.
pub struct Job<'a> {
    pub engine: &'a Engine,
    pub image: ImageFacts,
    pub reference: String,
    /// What tells one object's leftovers from another's ([`super::leftovers::object_label`]).
    pub object: String,
    pub nonce: String,
    pub network: Option<&'static str>,
    pub files: Vec<File>,
    /// Seconds since the epoch.
    pub now: i64,
}

/// A finished command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub exit_code: i64,
    pub output: String,
}

/// How a started container ended.
pub enum Ended<S> {
    Ran(Ran),
    /// It was stopped because of this.
    Stopped(S),
}

impl Job<'_> {
    fn volume(&self) -> String {
        format!("captf-unlock-{}", self.nonce)
    }

    fn container(&self, step: &str) -> String {
        format!("captf-unlock-{}-{step}", self.nonce)
    }

    /// Creates the volume.
    pub async fn prepare(&self) -> Result<(), EngineError> {
        let request = VolumeCreateRequest {
            name: Some(self.volume()),
            labels: Some(labels(&self.object, self.now)),
            ..VolumeCreateRequest::default()
        };
        let made = self.engine.docker.create_volume(request).await;
        made.map(drop).map_err(|e| failed("create a volume", &e))
    }

    /// Creates the container of a step, with the files in place and seen to be there. It is not started.
    pub async fn stage(&self, step: &str, command: &[String], upload: bool) -> Result<(), EngineError> {
        let name = self.container(step);
        let options = CreateContainerOptions { name: Some(name.clone()), ..CreateContainerOptions::default() };
        let made = self.engine.docker.create_container(Some(options), self.body(command)).await;
        made.map_err(|e| failed(&format!("create the container of {step}"), &e))?;
        let owner = self.owner(&name).await?;
        if upload {
            let tar =
                archive(&self.files, owner).map_err(|e| EngineError::new("pack the files").caused_by(e.to_string()))?;
            let options = UploadToContainerOptionsBuilder::default().path(MOUNT).build();
            let sent = self.engine.docker.upload_to_container(&name, Some(options), bollard::body_full(tar.into()));
            sent.await.map_err(|e| failed("copy the files into the volume", &e))?;
        }
        let back = self.download(&name, &format!("{MOUNT}/{FOLDER}")).await;
        let back = back.map_err(|e| failed("look at the files in the volume", &e))?;
        let lost = missing(&self.files, owner, &back);
        if lost.is_empty() {
            return Ok(());
        }
        Err(EngineError::new("the files of the unlock are not in the volume as they should be; nothing was run")
            .caused_by(lost.join(", ")))
    }

    fn body(&self, command: &[String]) -> ContainerCreateBody {
        ContainerCreateBody {
            image: Some(self.image.id.clone()),
            entrypoint: Some(vec![RUNTIME.to_string()]),
            cmd: Some(command.to_vec()),
            working_dir: Some(inside("root")),
            env: Some(environment(&self.image.env)),
            labels: Some(labels(&self.object, self.now)),
            host_config: Some(HostConfig {
                mounts: Some(vec![Mount {
                    typ: Some(MountType::VOLUME),
                    source: Some(self.volume()),
                    target: Some(MOUNT.to_string()),
                    ..Mount::default()
                }]),
                cap_drop: Some(vec!["ALL".to_string()]),
                security_opt: Some(vec!["no-new-privileges".to_string()]),
                network_mode: self.network.map(str::to_string),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }

    /// Starts a staged container and waits for its end, or kills it when `stop` comes first.
    pub async fn run<S>(&self, step: &str, stop: impl Future<Output = S>) -> Result<Ended<S>, EngineError> {
        let name = self.container(step);
        let docker = &self.engine.docker;
        let started = docker.start_container(&name, None::<StartContainerOptions>).await;
        started.map_err(|e| start_error(step, &e))?;
        let options = WaitContainerOptions { condition: "not-running".to_string() };
        let mut ended = Box::pin(docker.wait_container(&name, Some(options)));
        let exit_code = tokio::select! {
            ended = ended.next() => match ended {
                Some(Ok(answer)) => answer.status_code,
                Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => code,
                Some(Err(e)) => return Err(failed(&format!("wait for {step}"), &e)),
                None => return Err(EngineError::new(format!("the engine went away while {step} ran"))),
            },
            why = stop => {
                // A container that is gone already is what was wanted; `clean` tries once more.
                let _ = docker.kill_container(&name, None::<KillContainerOptions>).await;
                return Ok(Ended::Stopped(why));
            }
        };
        Ok(Ended::Ran(Ran { exit_code, output: self.output(&name).await }))
    }

    /// The end of what a container printed. Secrets that were handed in are blotted out, should a binary
    /// ever print them.
    async fn output(&self, name: &str) -> String {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail("200").build();
        let mut stream = self.engine.docker.logs(name, Some(options));
        let mut bytes = Vec::new();
        while let Some(Ok(chunk)) = stream.next().await {
            bytes.extend_from_slice(&chunk.into_bytes());
        }
        let from = bytes.len().saturating_sub(OUTPUT);
        let mut text = String::from_utf8_lossy(&bytes[from..]).trim().to_string();
        for file in &self.files {
            if let super::files::Content::Secret(secret) = &file.content {
                text = text.replace(secret.trim(), "<secret>");
            }
        }
        text
    }

    /// Removes containers and volume. Everything is tried; the first failure is returned.
    pub async fn clean(&self, steps: &[&str]) -> Result<(), EngineError> {
        let mut first = Ok(());
        for step in steps {
            first = first.and(remove_container(self.engine, &self.container(step)).await);
        }
        first.and(remove_volume(self.engine, &self.volume()).await)
    }

    async fn download(&self, container: &str, path: &str) -> Result<Vec<u8>, bollard::errors::Error> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let mut stream = Box::pin(self.engine.docker.download_from_container(container, Some(options)));
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.next().await {
            bytes.extend_from_slice(&chunk?);
        }
        Ok(bytes)
    }

    /// User and group of the image, as numbers; a name is looked up in the image's own files.
    async fn owner(&self, container: &str) -> Result<Owner, EngineError> {
        let passwd = match needs_passwd(&self.image.user) {
            false => String::new(),
            true => {
                let tar = self.download(container, "/etc/passwd").await;
                let tar = tar.map_err(|e| failed(&format!("look up user `{}` of the image", self.image.user), &e))?;
                first_file(&tar)
            }
        };
        owner_of(&self.image.user, &passwd)
            .ok_or_else(|| EngineError::new(format!("the image runs as `{}`, which it does not know", self.image.user)))
    }
}

fn needs_passwd(user: &str) -> bool {
    let name = user.split(':').next().unwrap_or_default();
    !name.is_empty() && name.parse::<u64>().is_err()
}

/// `""`, `uid`, `uid:gid`, `name`: the group of a name is that of its passwd entry, else 0.
fn owner_of(user: &str, passwd: &str) -> Option<Owner> {
    let (name, group) = user.split_once(':').map_or((user, None), |(u, g)| (u, Some(g)));
    if name.is_empty() {
        return Some(Owner { uid: 0, gid: 0 });
    }
    let entry = passwd.lines().map(|l| l.split(':').collect::<Vec<_>>()).find(|f| f.first() == Some(&name));
    let field = |at: usize| entry.as_ref().and_then(|f| f.get(at)?.parse().ok());
    let uid = name.parse().ok().or_else(|| field(2))?;
    let gid = group.and_then(|g| g.parse().ok()).or_else(|| field(3)).unwrap_or(0);
    Some(Owner { uid, gid })
}

fn first_file(tar: &[u8]) -> String {
    let mut text = String::new();
    let mut reader = tar::Archive::new(tar);
    if let Some(mut entry) = reader.entries().into_iter().flatten().flatten().next() {
        // A file that is no text has no entries to find.
        let _ = std::io::Read::read_to_string(&mut entry, &mut text);
    }
    text
}

fn start_error(step: &str, error: &bollard::errors::Error) -> EngineError {
    let (error, why) = (failed(&format!("start {step}"), error), words(error));
    if why.contains("exec format error") {
        error.hint("the image is for another platform; use an engine of that platform or `--method job`")
    } else if why.contains("no such file") || why.contains("not found") {
        error
            .hint(format!("the image has no {RUNTIME}: it is not an image of CAPTF; name the right one with `--image`"))
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_become_numbers() {
        let passwd = "root:x:0:0::/:/bin/sh\nnonroot:x:65532:65533::/:/sbin/nologin\n";
        for (user, expected) in [
            ("", Some((0, 0))),
            ("65532", Some((65532, 0))),
            ("65532:65531", Some((65532, 65531))),
            ("nonroot", Some((65532, 65533))),
            ("nonroot:7", Some((65532, 7))),
            ("stranger", None),
        ] {
            assert_eq!(owner_of(user, passwd).map(|o| (o.uid, o.gid)), expected, "{user}");
        }
        assert!(needs_passwd("nonroot:7") && !needs_passwd("65532:nonroot") && !needs_passwd(""));
    }
}
