// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {AuthorizationCheck} from "../../src/AuthorizationCheck.sol";
import {AuthorizationRelay, SignedAuthorization} from "../../src/AuthorizationRelay.sol";
import {TestUSDC} from "../../src/TestUSDC.sol";
import {GasBurner} from "../mocks/GasBurner.sol";
import {SmartAccount} from "../mocks/SmartAccount.sol";
import {SmartAccountFactory} from "../mocks/SmartAccountFactory.sol";
import {Base, OddToken, Vm} from "./Base.sol";

/// @notice Helpers shared by the tests of authorizations.
abstract contract Authorizations is Base {
    TestUSDC internal token;
    OddToken internal odd;
    GasBurner internal burner;
    SmartAccountFactory internal factory;
    address internal payer;
    uint256 private nonces;

    function prepare() internal {
        token = new TestUSDC(address(this));
        odd = new OddToken();
        burner = new GasBurner();
        factory = new SmartAccountFactory();
        payer = vm.addr(PAYER_KEY);
        token.mint(payer, 1000);
        odd.mint(payer, 1000);
        vm.warp(1000);
    }

    function from(address account, bytes memory signature) internal returns (SignedAuthorization memory) {
        return SignedAuthorization(
            address(token), account, MERCHANT, 10, 0, 2000, bytes32(++nonces), signature, address(0), ""
        );
    }

    /// An authorization with a signature of the payer's key, of 65 bytes or with one more byte before them.
    function signed(address account, bool long) internal returns (SignedAuthorization memory a) {
        a = from(account, "");
        (uint8 v, bytes32 r, bytes32 s) =
            signTransfer(token.DOMAIN_SEPARATOR(), PAYER_KEY, account, MERCHANT, 10, 2000, a.nonce);
        a.signature = long ? abi.encodePacked(uint8(0), r, s, v) : abi.encodePacked(r, s, v);
    }
}

contract RelayTest is Authorizations {
    AuthorizationRelay private relay;

    function setUp() public {
        prepare();
        relay = new AuthorizationRelay();
    }

    function limits(uint256 n, uint256 each) private pure returns (uint256[] memory all) {
        all = new uint256[](n);
        for (uint256 i = 0; i < n; ++i) {
            all[i] = each;
        }
    }

    /// Relays, and returns the number of refusals and the last one's reason.
    function refusals(SignedAuthorization[] memory all, uint256[] memory most) private returns (uint256 n, bytes memory reason) {
        vm.recordLogs();
        relay.relay(all, most);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter != address(relay)) continue;
            ++n;
            reason = abi.decode(logs[i].data, (bytes));
        }
    }

    function test_Relay() public {
        SignedAuthorization[] memory all = new SignedAuthorization[](3);
        address account = factory.accountOf(payer);
        token.mint(account, 100);
        all[0] = signed(payer, false);
        all[1] = signed(account, true);
        (all[1].deployer, all[1].deployData) = (address(factory), abi.encodeCall(factory.deploy, (payer)));
        all[2] = signed(payer, false);
        all[2].value = 11; // differs from the signed value
        (uint256 n, bytes memory reason) = refusals(all, limits(3, 600_000));
        eq(n, 1, "the number of refusals");
        require(bytes4(reason) == TestUSDC.InvalidSignature.selector, "the reason is another");
        eq(token.balanceOf(MERCHANT), 20, "what the merchant has");
        // The account exists now: its factory would burn all gas.
        all = new SignedAuthorization[](1);
        all[0] = signed(account, true);
        (all[0].deployer, all[0].deployData) = (address(factory), abi.encodeCall(factory.deploy, (payer)));
        (n,) = refusals(all, limits(1, 120_000));
        eq(n, 0, "an account that was deployed in the meantime is refused");
    }

    function test_NoToken() public {
        SignedAuthorization memory a = signed(payer, false);
        a.token = address(5);
        vm.expectRevert(abi.encodeWithSelector(AuthorizationRelay.NoToken.selector, address(5)));
        relay.relayOne(a);
    }

    function test_ReasonIsCut() public {
        SignedAuthorization[] memory all = new SignedAuthorization[](1);
        all[0] = from(payer, "");
        all[0].token = address(new Verbose());
        (, bytes memory reason) = refusals(all, limits(1, 300_000));
        eq(reason.length, 256, "the length of the reason");
    }

    /// Burners come first, and leave an arbitrary part of their gas. Each uses no more than its limit, and the honest
    /// one is carried out with exactly the gas that the relay requires.
    function testFuzz_BurnersBeforeAnHonestItem(uint8 burners, uint32 leaves, bool deployers) public {
        uint256 n = within(burners, 1, 6);
        burner.burn(within(leaves, 0, 400_000));
        token.mint(address(burner), 1000);
        SignedAuthorization[] memory all = new SignedAuthorization[](n + 1);
        uint256[] memory most = limits(n + 1, 200_000);
        for (uint256 i = 0; i < n; ++i) {
            all[i] = deployers ? signed(payer, false) : from(address(burner), hex"01");
            if (deployers) (all[i].deployer, all[i].deployData) = (address(burner), abi.encodeCall(burner.deploy, ()));
            all[i].from = deployers ? address(uint160(0xDEAD00 + i)) : all[i].from;
        }
        all[n] = signed(payer, false);
        most[n] = 80_000;
        uint256 needed = 5_000;
        for (uint256 i = 0; i <= n; ++i) {
            needed += most[i] + most[i] / 63 + 15_000 + 8 * (all[i].signature.length + all[i].deployData.length);
        }
        uint256 had = token.balanceOf(payer);
        uint256 before = gasleft();
        relay.relay{gas: needed + 60_000}(all, most);
        eq(had - token.balanceOf(payer), 10, "the honest one was not carried out");
        require(before - gasleft() < n * 200_000 + 80_000 + (n + 1) * 12_000 + 60_000, "one used more than its limit");
    }

    function test_NotEnoughGas() public {
        SignedAuthorization[] memory all = new SignedAuthorization[](2);
        (all[0], all[1]) = (signed(payer, false), signed(payer, false));
        uint256 needed = 2 * (63_000 + 1_000 + 15_000 + 8 * 65);
        vm.expectRevert(abi.encodeWithSelector(AuthorizationRelay.NotEnoughGas.selector, needed));
        relay.relay{gas: needed}(all, limits(2, 63_000));
    }

    function test_EveryItemHasALimit() public {
        SignedAuthorization[] memory all = new SignedAuthorization[](2);
        (all[0], all[1]) = (signed(payer, false), signed(payer, false));
        vm.expectRevert();
        relay.relay(all, limits(1, 100_000));
    }
}

contract Verbose {
    fallback() external {
        assembly {
            revert(0, 1000)
        }
    }
}

contract CheckTest is Authorizations {
    function setUp() public {
        prepare();
    }

    function check(SignedAuthorization memory a) private returns (AuthorizationCheck.Finding memory) {
        bytes memory code = abi.encodePacked(type(AuthorizationCheck).creationCode, abi.encode(a));
        address at;
        assembly {
            at := create(0, add(code, 32), mload(code))
        }
        return abi.decode(at.code, (AuthorizationCheck.Finding));
    }

    function test_AKey() public {
        AuthorizationCheck.Finding memory f = check(signed(payer, false));
        require(f.isSigned && f.isTransferred && !f.isUsed && !f.isContract && !f.isDeploying, "it is not good");
        eq(f.balance, 1000, "the payer's balance");
        eq(f.time, 1000, "the time");
        require(f.separator == token.DOMAIN_SEPARATOR() && f.gas > 30_000 && f.gas < 200_000, "separator or gas");
        SignedAuthorization memory other = signed(payer, false);
        other.nonce = 0;
        f = check(other);
        require(!f.isSigned && !f.isTransferred && f.failure.length == 4, "another nonce is taken");
        // The first one was carried out by its check here, since this is no simulation.
        eq(token.balanceOf(MERCHANT), 10, "what the merchant has");
    }

    function test_AnAccount() public {
        address account = factory.accountOf(payer);
        token.mint(account, 100);
        SignedAuthorization memory a = signed(account, true);
        (a.deployer, a.deployData) = (address(factory), abi.encodeCall(factory.deploy, (payer)));
        AuthorizationCheck.Finding memory f = check(a);
        require(f.isDeploying && f.isContract && f.isSigned && f.isTransferred, "it is not good");
        uint256 gas = f.gas;
        a = signed(account, true);
        (a.deployer, a.deployData) = (address(factory), abi.encodeCall(factory.deploy, (payer)));
        f = check(a);
        require(!f.isDeploying && f.isTransferred && f.gas < gas - 100_000, "it is deployed once more");
        f = check(signed(account, false));
        require(f.isSigned, "65 bytes are not taken");
    }

    /// A signature from which no signer can be recovered is not a signature of the zero address.
    function test_ZeroAddress() public {
        SignedAuthorization memory a = from(address(0), new bytes(65));
        AuthorizationCheck.Finding memory f = check(a);
        require(!f.isSigned, "the zero address has signed");
    }

    function test_AnotherAmountMoves() public {
        (uint256[3] memory numerators, uint256[3] memory denominators) = ([uint256(1), 2, 0], [uint256(1), 1, 1]);
        for (uint256 i = 0; i < 3; ++i) {
            odd.set(numerators[i], denominators[i], 0);
            SignedAuthorization memory a = from(payer, new bytes(65));
            a.token = address(odd);
            require(check(a).isTransferred == (i == 0), "a transfer of another amount");
        }
        odd.refuse(true); // returns nothing useful, and moves no tokens
        SignedAuthorization memory b = from(payer, new bytes(65));
        b.token = address(odd);
        require(!check(b).isTransferred, "nothing moved");
    }
}
