//! A host of a later version of the track: its contract has one more function, interface and export. It uses
//! the same library as the real host and knows only its own contract.

use wasmtime::component::{Component, HasSelf, Linker};
use wasmtime::{Engine, Store};

use super::component;

#[allow(
    unreachable_pub,
    unused_qualifications,
    missing_debug_implementations,
    clippy::all,
    clippy::restriction,
    reason = "generated from the WIT"
)]
mod later {
    wasmtime::component::bindgen!({ path: "../../tests/golden/0.1.1-additions/wit", world: "policy" });
}

use later::portcullis::policy::types::{
    Action, AgentInfo, Context, FileAccess, FileFacts, FileOperation, Machine, Origin, PathKind, PathRef,
    Request, Verdict, Workspace, Zone,
};
use later::portcullis::policy::{logging, net_tools, path_tools, state, types, workspace_view};

/// A host that returns the simplest valid values.
struct Later;

impl types::Host for Later {}

impl logging::Host for Later {
    fn log(&mut self, _level: logging::Level, _message: String) {}
}

impl path_tools::Host for Later {
    fn glob_match(&mut self, glob: String, _path: String) -> Result<bool, String> {
        if glob == "[" { Err("malformed".into()) } else { Ok(true) }
    }

    fn normalize(&mut self, _path: String, base: String) -> String {
        format!("{base}/b")
    }

    fn is_within(&mut self, path: String, directory: String) -> bool {
        path.starts_with(&directory)
    }
}

impl net_tools::Host for Later {
    fn host_match(&mut self, _pattern: String, _host: String) -> Result<bool, String> {
        Ok(true)
    }

    fn cidr_contains(&mut self, _cidr: String, _address: String) -> Result<bool, String> {
        Ok(true)
    }

    fn is_international(&mut self, host: String) -> bool {
        host.contains("xn--")
    }

    fn address_class(&mut self, _address: String) -> Result<String, String> {
        Ok("loopback".into())
    }
}

impl workspace_view::Host for Later {
    fn exists(&mut self, _path: String) -> bool {
        false
    }

    fn read_text(&mut self, _path: String) -> Result<String, String> {
        Err("there is none".into())
    }
}

impl state::Host for Later {
    fn get(&mut self, _key: String) -> Option<String> {
        None
    }

    fn set(&mut self, _key: String, _value: String) -> Result<(), String> {
        Ok(())
    }

    fn delete(&mut self, _key: String) {}

    fn increment(&mut self, _key: String, by: i32) -> Result<i32, String> {
        Ok(by)
    }
}

fn request() -> Request {
    let path = PathRef {
        given: "/srv/app/a".into(),
        absolute: "/srv/app/a".into(),
        canonical: "/srv/app/a".into(),
        zone: Zone::Workspace,
        relative: "a".into(),
        kind: PathKind::File,
    };
    let facts = FileFacts { size: 0, links: 1, owner: 0, mode: 0o644 };
    Request {
        id: "1".into(),
        parent: None,
        origin: Origin::Agent,
        action: Action::File(FileAccess { path, operation: FileOperation::Read, facts }),
        attributes: Vec::new(),
    }
}

fn context() -> Context {
    let text = String::new;
    Context {
        session_id: text(),
        agent: AgentInfo {
            name: text(),
            version: text(),
            model: None,
            sub_agent: text(),
            directory: text(),
            session_file: text(),
        },
        workspace: Workspace { roots: vec!["/srv/app".into()], trusted: true, vcs: None },
        machine: Machine {
            os: text(),
            arch: text(),
            home: text(),
            temp: text(),
            user: text(),
            uid: 0,
            path: Vec::new(),
            toolchains: Vec::new(),
        },
        interactive: true,
        now: 0,
        grants: Vec::new(),
        explain: false,
        attributes: Vec::new(),
    }
}

#[test]
fn a_component_of_0_1_0_runs_where_0_1_1_is_spoken() {
    let engine = Engine::default();
    let component = Component::new(&engine, component("imports")).unwrap();
    let mut linker = Linker::new(&engine);
    later::Policy::add_to_linker::<_, HasSelf<_>>(&mut linker, |later: &mut Later| later).unwrap();
    let mut store = Store::new(&engine, Later);
    let policy = later::Policy::instantiate(&mut store, &component, &linker).unwrap();
    let described = policy.portcullis_policy_lifecycle().call_describe(&mut store).unwrap();
    assert_eq!(described.id, "test:asks-host");
    let configured =
        policy.portcullis_policy_lifecycle().call_configure(&mut store, &"{}".to_owned()).unwrap();
    assert!(configured.is_ok());
    let answer =
        policy.portcullis_policy_evaluator().call_evaluate(&mut store, &request(), &context()).unwrap();
    assert!(matches!(answer.verdict, Verdict::Allow(_)), "{}", answer.cause.reason);
}
